#include "experiments/style.h"

namespace ring {

namespace {

std::string_view escape_of(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kStrong:
      return "\x1b[1m";
    case Tone::kDim:
      return "\x1b[2m";
    case Tone::kGood:
      return "\x1b[32m";
    case Tone::kWarn:
      return "\x1b[33m";
    case Tone::kBad:
      return "\x1b[31m";
  }
  return "";
}

}  // namespace

std::string Style::paint(Tone tone, std::string_view text) const {
  const std::string_view escape = escape_of(tone);
  if (!has_color || escape.empty() || text.empty()) return std::string(text);
  return std::string(escape) + std::string(text) + "\x1b[0m";
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  for (const char c : text) {
    const bool is_continuation = (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
    if (!is_continuation) ++width;
  }
  return width;
}

}  // namespace ring
