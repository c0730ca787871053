// counted: numbers before nouns, "1 rank" and "2 ranks".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace ring {

/// `noun` is that of one; the others get an "s". "1 pair" + " of GPUs" is for the caller to join.
inline std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}
inline std::string counted(size_t count, std::string_view noun) {
  return counted(static_cast<int64_t>(count), noun);
}
inline std::string counted(int count, std::string_view noun) {
  return counted(static_cast<int64_t>(count), noun);
}

}  // namespace ring
