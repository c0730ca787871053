#include "core/formats/machine_json.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/formats/calibration_json.h"
#include "core/formats/file_io.h"
#include "core/formats/json_object.h"
#include "core/formats/json_text.h"
#include "core/formats/kernels_json.h"
#include "core/formats/topology_json.h"

namespace ring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// A number of a struct under its name in the file.
template <typename Owner>
struct NumberField {
  std::string_view key;
  double Owner::*member;
};

constexpr std::array<NumberField<AttendCost>, 9> kAttendFields{{
    {"launch_s", &AttendCost::launch_s},
    {"per_pair_s", &AttendCost::per_pair_s},
    {"per_pair_dim_s", &AttendCost::per_pair_dim_s},
    {"per_edge_row_dim_s", &AttendCost::per_edge_row_dim_s},
    {"per_row_dim_s", &AttendCost::per_row_dim_s},
    {"per_far_row_dim_s", &AttendCost::per_far_row_dim_s},
    {"per_start_row_dim_s", &AttendCost::per_start_row_dim_s},
    {"per_key_dim_s", &AttendCost::per_key_dim_s},
    {"cache_bytes", &AttendCost::cache_bytes},
}};

/// Members of AttendCost that older files do not have.
constexpr std::array<NumberField<AttendCost>, 2> kLaterAttendFields{{
    {"merge_launch_s", &AttendCost::merge_launch_s},
    {"per_merge_row_dim_s", &AttendCost::per_merge_row_dim_s},
}};

constexpr std::array<NumberField<ByteCost>, 2> kByteCostFields{{
    {"start_s", &ByteCost::start_s},
    {"bytes_per_s", &ByteCost::bytes_per_s},
}};

constexpr std::array<NumberField<TrustedRange>, 2> kRangeFields{{
    {"low", &TrustedRange::low},
    {"high", &TrustedRange::high},
}};

constexpr std::array<NumberField<Noise>, 2> kNoiseFields{{
    {"per_op", &Noise::per_op},
    {"per_run", &Noise::per_run},
}};

constexpr std::array<NumberField<Machine>, 7> kMachineFields{{
    {"merge_bytes_per_s", &Machine::merge_bytes_per_s},
    {"finalize_bytes_per_s", &Machine::finalize_bytes_per_s},
    {"memory_bytes_per_s", &Machine::memory_bytes_per_s},
    {"wakeup_s", &Machine::wakeup_s},
    {"attend_contention", &Machine::attend_contention},
    {"attend_slowdown_by_transfer", &Machine::attend_slowdown_by_transfer},
    {"transfer_slowdown_by_attend", &Machine::transfer_slowdown_by_attend},
}};

/// Fields that older files do not have; 0 there.
constexpr std::array<NumberField<Machine>, 2> kLaterFields{{
    {"add_bytes_per_s", &Machine::add_bytes_per_s},
    {"delta_bytes_per_s", &Machine::delta_bytes_per_s},
}};

constexpr std::array<std::string_view, 2> kTransferWords{"links", "receiver-copy"};

template <typename Owner, size_t N>
ordered_json numbers_to_json(const Owner& owner, const std::array<NumberField<Owner>, N>& fields) {
  ordered_json object = ordered_json::object();
  for (const auto& field : fields) object[std::string(field.key)] = owner.*field.member;
  return object;
}

template <typename Owner, size_t N>
std::vector<std::string_view> keys_of(const std::array<NumberField<Owner>, N>& fields) {
  std::vector<std::string_view> keys;
  for (const auto& field : fields) keys.push_back(field.key);
  return keys;
}

template <typename Owner, size_t N>
Owner numbers_from_json(const json& value, const JsonPlace& place,
                        const std::array<NumberField<Owner>, N>& fields, bool may_be_negative) {
  const JsonObject object(value, place, keys_of(fields));
  Owner owner;
  for (const auto& field : fields) {
    owner.*field.member = may_be_negative ? object.number(field.key) : object.amount(field.key);
  }
  return owner;
}

AttendCost attend_cost_from_json(const json& value, const JsonPlace& place) {
  std::vector<std::string_view> keys = keys_of(kAttendFields);
  for (const auto& field : kLaterAttendFields) keys.push_back(field.key);
  keys.push_back("tiles");
  const JsonObject object(value, place, keys);
  AttendCost cost;
  for (const auto& field : kAttendFields) cost.*field.member = object.amount(field.key);
  for (const auto& field : kLaterAttendFields) {
    if (object.has(field.key)) cost.*field.member = object.amount(field.key);
  }
  if (object.has("tiles")) cost.tiles = tiles_from_json(object.at("tiles"), object.place("tiles"));
  return cost;
}

ordered_json attend_to_json(const std::map<DType, AttendCost>& attend) {
  ordered_json object = ordered_json::object();
  for (const auto& [dtype, cost] : attend) {
    ordered_json entry = numbers_to_json(cost, kAttendFields);
    for (const auto& field : kLaterAttendFields) {
      if (cost.*field.member != 0) entry[std::string(field.key)] = cost.*field.member;
    }
    if (!cost.tiles.empty()) entry["tiles"] = tiles_to_json(cost.tiles);
    object[std::string(name(dtype))] = std::move(entry);
  }
  return object;
}

std::map<DType, AttendCost> attend_from_json(const JsonObject& machine, std::string_view key) {
  constexpr std::array<std::string_view, 3> kWords{"fp32", "bf16", "fp16"};
  std::map<DType, AttendCost> attend;
  for (const auto& item : machine.map(key).items()) {
    const JsonPlace place = machine.place(key).at(item.key());
    index_of_word(item.key(), kWords, machine.place(key).text());
    attend[parse_dtype(item.key())] = attend_cost_from_json(item.value(), place);
  }
  return attend;
}

std::map<std::string, std::string> texts_from_json(const JsonObject& machine,
                                                   std::string_view key) {
  std::map<std::string, std::string> texts;
  for (const auto& item : machine.map(key).items()) {
    texts[item.key()] = as_string(item.value(), machine.place(key).at(item.key()));
  }
  return texts;
}

std::map<std::string, TrustedRange> trusted_from_json(const JsonObject& machine) {
  std::map<std::string, TrustedRange> trusted;
  for (const auto& item : machine.map("trusted").items()) {
    const JsonPlace place = machine.place("trusted").at(item.key());
    const TrustedRange range = numbers_from_json(item.value(), place, kRangeFields, true);
    if (range.low > range.high) throw_usage(place.text() + ": low is above high");
    trusted[item.key()] = range;
  }
  return trusted;
}

std::vector<int> processors_from_json(const JsonObject& machine, size_t node_count) {
  std::vector<int> processors;
  const json& values = machine.array("processors");
  for (size_t i = 0; i < values.size(); ++i) {
    const JsonPlace place = machine.place("processors").at(i);
    const int64_t node = as_integer(values[i], place, 0);
    if (node >= static_cast<int64_t>(node_count)) {
      throw_usage(fmt::format("{}: there is no node {}, the topology has {}", place.text(), node,
                              node_count));
    }
    processors.push_back(static_cast<int>(node));
  }
  return processors;
}

std::vector<std::string_view> machine_keys() {
  std::vector<std::string_view> keys{
      "schema",   "schema_version", "name",        "calibrated",
      "topology", "processors",     "transfer",    "attend",
      "backward", "copy",           "noise",       "trusted",
      "context",  "provenance",     "calibration", "memory_capacity_bytes",
      "kernels"};
  for (const auto& field : kMachineFields) keys.push_back(field.key);
  for (const auto& field : kLaterFields) keys.push_back(field.key);
  return keys;
}

Machine machine_from_json(const JsonObject& object) {
  Machine machine;
  machine.name = object.string("name");
  machine.is_calibrated = object.boolean("calibrated");
  machine.topology = topology_from_json(object.at("topology"), object.place("topology"));
  machine.processors = processors_from_json(object, machine.topology.nodes().size());
  machine.transfer = static_cast<TransferKind>(
      index_of_word(object.string("transfer"), kTransferWords, object.place("transfer").text()));
  machine.attend = attend_from_json(object, "attend");
  if (object.has("backward")) machine.backward = attend_from_json(object, "backward");
  if (object.has("kernels")) {
    machine.kernels = kernels_from_json(object.at("kernels"), object.place("kernels"));
  }
  machine.copy = numbers_from_json(object.at("copy"), object.place("copy"), kByteCostFields, false);
  for (const auto& field : kMachineFields) machine.*field.member = object.amount(field.key);
  for (const auto& field : kLaterFields) {
    if (object.has(field.key)) machine.*field.member = object.amount(field.key);
  }
  machine.memory_capacity_bytes = object.integer("memory_capacity_bytes", 0);
  machine.noise = numbers_from_json(object.at("noise"), object.place("noise"), kNoiseFields, false);
  machine.trusted = trusted_from_json(object);
  machine.context = texts_from_json(object, "context");
  machine.provenance = texts_from_json(object, "provenance");
  return machine;
}

}  // namespace

std::string machine_json(const MachineFile& file) {
  const Machine& machine = file.machine;
  ordered_json out;
  out["schema"] = kMachineSchema;
  out["schema_version"] = kMachineSchemaVersion;
  out["name"] = machine.name;
  out["calibrated"] = machine.is_calibrated;
  out["topology"] = topology_to_json(machine.topology);
  out["processors"] = machine.processors;
  out["transfer"] = kTransferWords[static_cast<size_t>(machine.transfer)];
  out["attend"] = attend_to_json(machine.attend);
  out["backward"] = attend_to_json(machine.backward);
  if (!machine.kernels.empty()) out["kernels"] = kernels_to_json(machine.kernels);
  out["copy"] = numbers_to_json(machine.copy, kByteCostFields);
  for (const auto& field : kMachineFields) {
    out[std::string(field.key)] = machine.*field.member;
  }
  for (const auto& field : kLaterFields) out[std::string(field.key)] = machine.*field.member;
  out["memory_capacity_bytes"] = machine.memory_capacity_bytes;
  out["noise"] = numbers_to_json(machine.noise, kNoiseFields);
  out["trusted"] = ordered_json::object();
  for (const auto& [quantity, range] : machine.trusted) {
    out["trusted"][quantity] = numbers_to_json(range, kRangeFields);
  }
  out["context"] = machine.context;
  out["provenance"] = machine.provenance;
  out["calibration"] = calibration_to_json(file.calibration);
  return json_text(out, "machine " + machine.name);
}

MachineFile parse_machine(std::string_view text, const std::string& name) {
  const json document = parse_json(text, name);
  require_schema(document, name, kMachineSchema, kMachineSchemaVersion);
  const JsonObject object(document, {name, ""}, machine_keys());
  MachineFile file;
  file.machine = machine_from_json(object);
  file.calibration = calibration_from_json(object.at("calibration"), object.place("calibration"));
  return file;
}

MachineFile read_machine(const std::string& path) { return parse_machine(read_file(path), path); }

void write_machine(const std::string& path, const MachineFile& file) {
  write_file(path, machine_json(file));
}

}  // namespace ring
