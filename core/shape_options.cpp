#include "core/shape_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace ring {

ShapeOptions::ShapeOptions(std::string_view shape, std::string_view text) : shape_(shape) {
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == item.size()) {
      throw_usage(fmt::format("shape '{}': '{}' is not key=value", shape, item),
                  "write for example ring:ranks=8,bandwidth=25GB/s");
    }
    const std::string key(item.substr(0, equals));
    if (!values_.emplace(key, item.substr(equals + 1)).second) {
      throw_usage(fmt::format("shape '{}': '{}' is given twice", shape, key));
    }
  }
}

const std::string* ShapeOptions::find(std::string_view key) {
  known_.emplace_back(key);
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : &at->second;
}

std::string ShapeOptions::what(std::string_view key) const {
  return fmt::format("shape '{}': {}", shape_, key);
}

std::string ShapeOptions::text(std::string_view key, std::string_view fallback) {
  const std::string* value = find(key);
  return value == nullptr ? std::string(fallback) : *value;
}

int ShapeOptions::count(std::string_view key, int fallback, int low, int high) {
  const std::string* text = find(key);
  if (text == nullptr) return fallback;
  const int64_t value = parse_count(*text, what(key));
  if (value < low || value > high) {
    throw_usage(fmt::format("{} is {}, allowed are {} to {}", what(key), value, low, high));
  }
  return static_cast<int>(value);
}

double ShapeOptions::bandwidth(std::string_view key, double fallback_bytes_per_s) {
  const std::string* text = find(key);
  if (text == nullptr) return fallback_bytes_per_s;
  const double value = parse_bandwidth(*text, what(key));
  if (!(value > 0)) throw_usage(fmt::format("{} must be greater than 0", what(key)));
  return value;
}

Picoseconds ShapeOptions::latency(std::string_view key, Picoseconds fallback_ps) {
  const std::string* text = find(key);
  if (text == nullptr) return fallback_ps;
  const Picoseconds value = parse_time(*text, what(key));
  if (value < 0) throw_usage(fmt::format("{} must not be negative", what(key)));
  return value;
}

bool ShapeOptions::flag(std::string_view key, bool fallback) {
  const std::string* text = find(key);
  if (text == nullptr) return fallback;
  if (*text != "yes" && *text != "no") {
    throw_usage(fmt::format("{} is '{}'", what(key), *text), "allowed are yes and no");
  }
  return *text == "yes";
}

std::vector<int> ShapeOptions::order(int n) {
  std::vector<int> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  const std::string* text = find("order");
  if (text == nullptr) return order;
  std::vector<int> given;
  std::vector<bool> is_taken(order.size(), false);
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find('-'));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const int64_t value = parse_count(item, what("order"));
    if (value < 0 || value >= n || is_taken[static_cast<size_t>(value)]) {
      throw_usage(fmt::format("{}: {} is not a processor of this shape or comes twice",
                              what("order"), value),
                  fmt::format("name each of 0 to {} once", n - 1));
    }
    is_taken[static_cast<size_t>(value)] = true;
    given.push_back(static_cast<int>(value));
  }
  if (std::ssize(given) != n) {
    throw_usage(fmt::format("{} names {} of {} processors", what("order"), given.size(), n));
  }
  return given;
}

void ShapeOptions::require_all_used() const {
  for (const auto& [key, value] : values_) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::vector<std::string_view> names(known_.begin(), known_.end());
    const std::string near = nearest_spelling(key, names.data(), static_cast<int>(names.size()));
    throw_usage(fmt::format("shape '{}' has no key '{}'{}", shape_, key,
                            near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
                fmt::format("its keys are {}", fmt::join(known_, ", ")));
  }
}

}  // namespace ring
