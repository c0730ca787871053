#include "kernels/machine_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/formats/import/detect.h"
#include "core/formats/import/imported.h"
#include "core/formats/machine_json.h"
#include "core/library.h"
#include "core/machine_presets.h"
#include "core/paths.h"
#include "core/topology_shapes.h"
#include "kernels/host_facts.h"
#include "kernels/topology_choice.h"

namespace ring {

namespace {

/// Orders of magnitude of a core of this decade, for a first look before anything is calibrated.
Machine stand_in_machine() {
  const HostFacts host = detect_host();
  Machine machine;
  machine.name = "uncalibrated CPU";
  machine.transfer = TransferKind::kReceiverCopy;
  const int cores = std::max(1, std::min(host.cores, host.allowed_threads));
  for (int i = 0; i < cores; ++i) {
    machine.processors.push_back(
        machine.topology.add_node({fmt::format("core{}", i), NodeKind::kCore, 0}));
  }
  constexpr double kFlopsPerSecond = 50e9;
  AttendCost attend;
  attend.launch_s = 2e-6;
  attend.per_pair_dim_s = 2 / kFlopsPerSecond;
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    machine.attend[dtype] = attend;
    machine.backward[dtype] = attend;
  }
  machine.copy = {1e-6, 8e9};
  machine.merge_bytes_per_s = 8e9;
  machine.memory_bytes_per_s = 20e9;
  machine.wakeup_s = 10e-6;
  machine.memory_capacity_bytes = host.memory_bytes / cores;
  machine.noise = {0.1, 0.1};
  machine.provenance["all"] = "orders of magnitude, not measured";
  return machine;
}

/// Where `name` is no file but near the name of a machine or a shape.
void refuse_misspelt(const std::string& name) {
  std::string near = nearest_in_library(LibraryKind::kMachines, name);
  if (near.empty()) {
    std::vector<std::string_view> shapes;
    for (const ShapeInfo& shape : all_shapes()) shapes.push_back(shape.name);
    near = nearest_spelling(name.substr(0, name.find(':')), shapes.data(),
                            static_cast<int>(shapes.size()));
  }
  if (near.empty()) return;
  throw_usage(fmt::format("there is neither a file nor a machine '{}'", name),
              fmt::format("did you mean {}? ringscope machines lists them", near));
}

/// Files of which it is known that no machine comes of them; JSON of any kind its reader refuses.
void refuse_other_kinds(const std::string& path) {
  if (!file_exists(path) || std::filesystem::is_directory(path)) return;
  const std::string head = head_of_file(path);
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && head[first] == '{') return;
  const FileKind kind = detect(head);
  if (kind == FileKind::kMachineFile) return;
  throw_usage(
      fmt::format("{}: {}, of which no machine can be made", path,
                  first == std::string::npos ? "an empty file" : describe(kind)),
      "take a machine file, nvidia-smi topo -m, rocm-smi, a topology file of NCCL, or TOML");
}

/// As seen from the working folder where it is below that, else whole: a scenario file gives whole
/// paths, people do not, and both mean the same run. Keys behind the path stay.
std::string shown(const std::string& text) {
  const std::string path = file_exists(text) ? text : topology_path(text);
  std::error_code unknown;
  const std::filesystem::path here = std::filesystem::current_path(unknown);
  if (unknown || path.empty()) return text;
  const std::filesystem::path whole = (here / path).lexically_normal();
  const std::filesystem::path below = whole.lexically_relative(here);
  const bool is_below = !below.empty() && *below.begin() != "..";
  return (is_below ? below : whole).string() + text.substr(path.size());
}

}  // namespace

MachineChoice choose_machine(const std::string& path) {
  if (is_machine_preset(path) && !file_exists(path)) {
    return {machine_preset(path), "preset", path + ", from datasheets, not calibrated", false, {}};
  }
  if (!path.empty() && !file_exists(path)) {
    const std::string known = find_in_library(LibraryKind::kMachines, path);
    if (!known.empty()) {
      MachineFile file = read_machine(known);
      return {std::move(file.machine), known,
              path + ", of the library: fitted to published measurements", false,
              std::move(file.calibration)};
    }
    refuse_misspelt(path);
  }
  if (!path.empty() && is_topology_file(path)) {
    TopologyMachine read = read_topology_machine(path);
    std::string note = shown(path) + ", links from the file, costs of computation from ";
    note += read.has_gpu_assumed ? "an A100 (assumed)" : "what the file or its keys say";
    return {std::move(read.machine), shown(path), note + ", not calibrated", false, {}};
  }
  const std::string file = path.empty() ? default_machine_path() : path;
  if (path.empty() && !file_exists(file)) {
    return {stand_in_machine(),
            "built-in",
            "UNCALIBRATED stand-in, times are rough guesses: run ringscope calibrate",
            true,
            {}};
  }
  if (!path.empty()) refuse_other_kinds(path);
  MachineFile read = read_machine(file);
  Machine& machine = read.machine;
  const std::string note = fmt::format("{} ({}{})", machine.name, shown(file),
                                       machine.is_calibrated ? "" : ", not calibrated");
  return {std::move(machine), shown(file), note, false, std::move(read.calibration)};
}

std::vector<MachineOffer> machine_offers() {
  std::vector<MachineOffer> offers;
  const bool is_calibrated = file_exists(default_machine_path());
  offers.push_back({"", is_calibrated ? "this machine, as calibrated"
                                      : "this machine, not calibrated: rough guesses"});
  for (const LibraryEntry& entry : library_entries(LibraryKind::kMachines)) {
    offers.push_back({entry.name, "of the library, fitted to published measurements"});
  }
  for (const ShapeInfo& shape : all_shapes()) {
    offers.push_back({std::string(shape.name), std::string(shape.summary)});
  }
  return offers;
}

}  // namespace ring
