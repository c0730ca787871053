// Style: how text is drawn on one output stream: colours, and the columns that there are.
#pragma once

#include <string>
#include <string_view>

namespace ring {

/// What a piece of text says about itself; the text must say it too (colour is never the only cue).
enum class Tone { kPlain, kStrong, kDim, kGood, kWarn, kBad };

struct Style {
  bool has_color = false;
  size_t columns = 0;  ///< Of the terminal; 0: no limit.

  /// `text` wrapped in the escape codes of `tone`, or unchanged without colour.
  std::string paint(Tone tone, std::string_view text) const;
};

/// Columns that UTF-8 `text` takes on a terminal, counting one per code point.
size_t display_width(std::string_view text);

}  // namespace ring
