// ShapeOptions: the key=value list of a shape's name, read by type; unknown keys are refused.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.h"

namespace ring {

class ShapeOptions {
 public:
  /// Reads "key=value,key=value"; throws Error(kUsage) for anything else and for a key twice.
  ShapeOptions(std::string_view shape, std::string_view text);

  /// Every reader returns `fallback` when the key is absent and throws Error(kUsage) for values out
  /// of [low, high] or not positive.
  int count(std::string_view key, int fallback, int low, int high);
  double bandwidth(std::string_view key, double fallback_bytes_per_s);
  Picoseconds latency(std::string_view key, Picoseconds fallback_ps);
  bool flag(std::string_view key, bool fallback);  ///< yes or no.
  std::string text(std::string_view key, std::string_view fallback);
  /// "0-4-1-5": a permutation of 0 .. n - 1, or these in order when absent.
  std::vector<int> order(int n);

  /// Throws Error(kUsage) naming the first key that nobody asked for.
  void require_all_used() const;

 private:
  const std::string* find(std::string_view key);
  std::string what(std::string_view key) const;

  std::string shape_;
  std::map<std::string, std::string, std::less<>> values_;
  std::vector<std::string> known_;
};

}  // namespace ring
