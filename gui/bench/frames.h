// Frames: how long the timeline takes to draw itself anew, frame by frame.
#pragma once

#include <memory>
#include <vector>

#include "gui/timeline/timeline_model.h"

namespace ring::gui {

/// A made-up ring of 8 ranks with about `slices` slices: attention of uneven length, sends and
/// receives that wait; measured, and predicted a little shorter.
std::shared_ptr<const TimelineModel> ring_of_slices(int64_t slices);

struct FrameTimes {
  std::vector<double> pan_ms, zoom_ms;
};

/// Shows the model in a window of 1600 x 900 and moves it, over the same frames `rounds` times; of
/// each frame the quickest round counts. Throws Error(kWrongResult) when the picture lacks what the
/// model holds.
FrameTimes time_frames(const std::shared_ptr<const TimelineModel>& model, int frames, int rounds);

}  // namespace ring::gui
