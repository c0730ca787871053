#include "core/formats/hf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace ring {
namespace {

using nlohmann::json;

constexpr int64_t kLargestCount = int64_t{1} << 32;

}  // namespace

bool PerLayer::is_uniform() const {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; });
}

bool HfKeys::has(std::string_view key) const {
  const auto found = config_->find(key);
  return found != config_->end() && !found->is_null();
}

const json& HfKeys::at(std::string_view key) const { return *config_->find(key); }

std::optional<int64_t> HfKeys::count(std::initializer_list<std::string_view> keys) const {
  for (const std::string_view key : keys) {
    if (has(key)) return as_integer(at(key), place(key), 1, kLargestCount);
  }
  return std::nullopt;
}

std::optional<PerLayer> HfKeys::per_layer(std::initializer_list<std::string_view> keys,
                                          int64_t layers) const {
  for (const std::string_view key : keys) {
    if (!has(key)) continue;
    PerLayer numbers{std::string(key), {}};
    const json& value = at(key);
    if (!value.is_array()) {
      numbers.values = {as_integer(value, place(key), 1, kLargestCount)};
      return numbers;
    }
    numbers.values = list(key);
    if (static_cast<int64_t>(numbers.values.size()) != layers) {
      throw_usage(fmt::format("{}: a list of {} for {} layers", place(key).text(),
                              numbers.values.size(), layers));
    }
    return numbers;
  }
  return std::nullopt;
}

std::optional<std::string> HfKeys::text(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return as_string(at(key), place(key));
}

bool HfKeys::flag(std::string_view key, bool fallback) const {
  return has(key) ? as_boolean(at(key), place(key)) : fallback;
}

std::vector<int64_t> HfKeys::list(std::string_view key) const {
  std::vector<int64_t> numbers;
  const json& values = as_array(at(key), place(key));
  for (size_t i = 0; i < values.size(); ++i) {
    numbers.push_back(as_integer(values[i], place(key).at(i), 0, kLargestCount));
  }
  return numbers;
}

}  // namespace ring
