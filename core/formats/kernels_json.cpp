#include "core/formats/kernels_json.h"

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace ring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <typename Value>
struct Field {
  std::string_view key;
  Value TileKernel::*member;
};

constexpr std::array<Field<int64_t>, 5> kCounts{{
    {"head_dim", &TileKernel::head_dim},
    {"tile_rows", &TileKernel::tile_rows},
    {"step_tokens", &TileKernel::step_tokens},
    {"slots", &TileKernel::slots},
    {"slots_per_unit", &TileKernel::slots_per_unit},
}};
constexpr std::array<Field<bool>, 2> kFlags{{
    {"balanced", &TileKernel::is_balanced},
    {"splits_keys", &TileKernel::splits_keys},
}};
constexpr std::array<Field<double>, 6> kTimes{{
    {"per_pair_s", &TileKernel::per_pair_s},
    {"per_tile_s", &TileKernel::per_tile_s},
    {"per_row_dim_s", &TileKernel::per_row_dim_s},
    {"launch_s", &TileKernel::launch_s},
    {"alone_speed", &TileKernel::alone_speed},
    {"memory_bytes_per_s", &TileKernel::memory_bytes_per_s},
}};

std::vector<std::string_view> tile_keys() {
  std::vector<std::string_view> keys;
  for (const auto& field : kCounts) keys.push_back(field.key);
  for (const auto& field : kFlags) keys.push_back(field.key);
  for (const auto& field : kTimes) keys.push_back(field.key);
  return keys;
}

}  // namespace

ordered_json tiles_to_json(const std::vector<TileKernel>& tiles) {
  ordered_json array = ordered_json::array();
  for (const TileKernel& kernel : tiles) {
    ordered_json object = ordered_json::object();
    for (const auto& field : kCounts) object[std::string(field.key)] = kernel.*field.member;
    for (const auto& field : kFlags) object[std::string(field.key)] = kernel.*field.member;
    for (const auto& field : kTimes) object[std::string(field.key)] = kernel.*field.member;
    array.push_back(std::move(object));
  }
  return array;
}

std::vector<TileKernel> tiles_from_json(const json& value, const JsonPlace& place) {
  constexpr int64_t kMost = int64_t{1} << 24;
  std::vector<TileKernel> tiles;
  const json& array = as_array(value, place);
  for (size_t i = 0; i < array.size(); ++i) {
    const JsonObject object(array[i], place.at(i), tile_keys());
    TileKernel kernel;
    for (const auto& field : kCounts) {
      kernel.*field.member = object.integer(field.key, 1, kMost);
    }
    for (const auto& field : kFlags) kernel.*field.member = object.boolean(field.key);
    for (const auto& field : kTimes) kernel.*field.member = object.amount(field.key);
    if (!tiles.empty() && tiles.back().head_dim >= kernel.head_dim) {
      throw_usage(object.place("head_dim").text() + ": head dims must ascend");
    }
    tiles.push_back(kernel);
  }
  return tiles;
}

ordered_json kernels_to_json(const std::map<std::string, KernelFamily>& kernels) {
  ordered_json object = ordered_json::object();
  for (const auto& [name, family] : kernels) {
    object[name] = {{"forward", tiles_to_json(family.forward)},
                    {"backward", tiles_to_json(family.backward)}};
  }
  return object;
}

std::map<std::string, KernelFamily> kernels_from_json(const json& value, const JsonPlace& place) {
  std::map<std::string, KernelFamily> kernels;
  if (!value.is_object()) throw_usage(place.text() + ": an object of kernel families is needed");
  for (const auto& item : value.items()) {
    const JsonObject family(item.value(), place.at(item.key()), {"forward", "backward"});
    kernels[item.key()] = {tiles_from_json(family.at("forward"), family.place("forward")),
                           tiles_from_json(family.at("backward"), family.place("backward"))};
  }
  return kernels;
}

}  // namespace ring
