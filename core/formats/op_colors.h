// Colours of op kinds: the Okabe-Ito palette, which people with any colour vision can tell apart.
#pragma once

#include <string>
#include <string_view>

#include "core/ring_program.h"

namespace ring {

inline constexpr std::string_view kWaitColor = "#999999";
inline constexpr std::string_view kCriticalColor = "#D55E00";

/// "#0072B2" and so on; computing without attention has the colour of attending.
std::string_view color_of(OpKind kind);
/// The colour mixed with black (`share` < 0) or white (`share` > 0), by that share.
std::string mixed(std::string_view color, double share);

}  // namespace ring
