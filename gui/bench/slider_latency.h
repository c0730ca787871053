// SliderLatency: how long it takes from a moved slider to the picture that answers it.
#pragma once

#include <vector>

namespace ring::gui {

/// Drags pipeline depth and link bandwidth of a ring of 8 ranks over 1 Mi tokens with blocks of
/// 4096 in a whole window, and waits after each move until the timeline has drawn the new
/// prediction. Milliseconds of each move. Throws Error(kWrongResult) when a picture does not come,
/// or is not of the scenario asked for.
std::vector<double> slider_latencies_ms(int moves);

}  // namespace ring::gui
