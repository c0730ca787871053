#include "core/formats/import/topo_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/counted.h"
#include "core/error.h"
#include "core/formats/import/rocm_matrix.h"
#include "core/formats/import/topo_table.h"

namespace ring {
namespace {

std::optional<HopClass> hop_of(std::string_view cell) {
  if (cell == "X") return HopClass{HopKind::kSelf};
  if (cell == "PIX") return HopClass{HopKind::kPix};
  if (cell == "PXB") return HopClass{HopKind::kPxb};
  if (cell == "PHB") return HopClass{HopKind::kPhb};
  if (cell == "NODE") return HopClass{HopKind::kNode};
  if (cell == "SYS" || cell == "SOC") return HopClass{HopKind::kSys};
  if (const auto links = index_after(cell, "NV"); links && *links > 0) {
    return HopClass{HopKind::kNvLink, *links};
  }
  return std::nullopt;
}

std::optional<PeerAccess> access_of(std::string_view cell) {
  static constexpr std::array<std::string_view, 5> kRefusals{"CNS", "GNS", "TNS", "NS", "DR"};
  if (cell == "X" || cell == "OK") return PeerAccess::kYes;
  if (cell == "U") return PeerAccess::kUnknown;
  if (std::find(kRefusals.begin(), kRefusals.end(), cell) != kRefusals.end())
    return PeerAccess::kNo;
  return std::nullopt;
}

template <typename Parse>
bool all_cells(const TopoTable& table, Parse parse) {
  for (const TopoRow& row : table.rows) {
    for (const std::string& cell : row.cells) {
      if (!parse(cell)) return false;
    }
  }
  return true;
}

bool is_access_table(const TopoTable& table) {
  return all_cells(table, access_of) && !all_cells(table, hop_of);
}

TopoDeviceKind device_kind(std::string_view name) {
  if (index_after(name, "GPU")) return TopoDeviceKind::kGpu;
  static constexpr std::array<std::string_view, 12> kNics{
      "NIC", "mlx", "bnxt", "roce", "ib", "hfi", "rdma", "irdma", "efa", "rocep", "cxi", "hsn"};
  const bool is_nic = std::any_of(kNics.begin(), kNics.end(), [&](std::string_view prefix) {
    return name.starts_with(prefix);
  });
  return is_nic ? TopoDeviceKind::kNic : TopoDeviceKind::kOther;
}

constexpr int64_t kHighestNuma = 4096;

/// "0,2-17" -> 0, 2, ..., 17.
std::vector<int> numbers_of_list(std::string_view list) {
  std::vector<int> numbers;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list = part.size() == list.size() ? std::string_view() : list.substr(part.size() + 1);
    const auto first = leading_whole(part);
    if (!first) return {};
    const size_t dash = part.find('-');
    const auto last = dash == std::string_view::npos ? first : leading_whole(part.substr(dash + 1));
    if (!last || *first < 0 || *last < *first || *last > kHighestNuma) return {};
    if (std::ssize(numbers) > kHighestNuma) return {};
    for (int64_t i = *first; i <= *last; ++i) numbers.push_back(static_cast<int>(i));
  }
  return numbers;
}

void read_affinity(const TopoTable& table, const TopoRow& row, TopoDevice& device) {
  size_t at = 0;
  for (size_t i = 0; i < table.tail.size() && at < row.tail.size(); ++i) {
    if (table.tail[i] != "Affinity" || i == 0) continue;
    const std::string& value = row.tail[at++];
    if (table.tail[i - 1] == "CPU") {
      if (value != "N/A") device.cpu_affinity = value;
    } else {
      device.numa = numbers_of_list(value);
    }
  }
}

void add(TopoMatrix& matrix, FindingKind kind, int64_t line, std::string text) {
  matrix.findings.push_back({kind, std::move(text), line});
}

size_t column_of(const TopoTable& table, const std::string& device) {
  return static_cast<size_t>(std::find(table.columns.begin(), table.columns.end(), device) -
                             table.columns.begin());
}

void make_devices(const TopoTable& table, TopoMatrix& matrix) {
  for (const std::string& name : table.columns) {
    TopoDevice device;
    device.name = name;
    device.kind = device_kind(name);
    if (device.kind == TopoDeviceKind::kOther) {
      add(matrix, FindingKind::kIgnored, table.line, name + " is neither a GPU nor a NIC");
    }
    matrix.devices.push_back(device);
  }
  matrix.hops.assign(table.columns.size(), std::vector<HopClass>(table.columns.size()));
}

/// Both cells of a pair, or the one that is there.
void set_hop(TopoMatrix& matrix, size_t row, size_t column, HopClass hop,
             const std::string& where) {
  HopClass& there = matrix.hops[row][column];
  HopClass& back = matrix.hops[column][row];
  if ((row == column) != (hop.kind == HopKind::kSelf)) {
    throw_usage(fmt::format("{}: {} between {} and {}", where, hop.text(), matrix.devices[row].name,
                            matrix.devices[column].name));
  }
  if (back.kind != HopKind::kUnknown && back != hop) {
    throw_usage(fmt::format("{}: {} to {} is {}, but back it is {}", where,
                            matrix.devices[row].name, matrix.devices[column].name, hop.text(),
                            back.text()));
  }
  there = back = hop;
}

/// A matrix that was cut between two rows has pairs of which neither cell is there.
void require_all_pairs(const TopoTable& table, const std::string& file, const TopoMatrix& matrix) {
  for (const size_t a : matrix.of_kind(TopoDeviceKind::kGpu)) {
    for (const size_t b : matrix.of_kind(TopoDeviceKind::kGpu)) {
      if (a >= b || matrix.hops[a][b].kind != HopKind::kUnknown) continue;
      throw_usage(fmt::format("{}:{}: neither {} nor {} has a row: the matrix is cut", file,
                              table.line, matrix.devices[a].name, matrix.devices[b].name),
                  "Take the whole output of `nvidia-smi topo -m`.");
    }
  }
}

void read_links(const TopoTable& table, const std::string& file, TopoMatrix& matrix) {
  make_devices(table, matrix);
  for (const TopoRow& row : table.rows) {
    const std::string where = fmt::format("{}:{}", file, row.line);
    const size_t at = column_of(table, row.device);
    read_affinity(table, row, matrix.devices[at]);
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const auto hop = hop_of(row.cells[i]);
      if (!hop) {
        throw_usage(fmt::format("{}: \"{}\" is not a link class", where, row.cells[i]),
                    "Link classes are NV#, PIX, PXB, PHB, NODE and SYS.");
      }
      set_hop(matrix, at, i, *hop, where);
    }
  }
  require_all_pairs(table, file, matrix);
}

void read_access(const TopoTable& table, TopoMatrix& matrix) {
  if (matrix.devices.empty()) make_devices(table, matrix);
  const size_t count = matrix.devices.size();
  matrix.peer_access.assign(count, std::vector<PeerAccess>(count, PeerAccess::kUnknown));
  std::map<std::string_view, size_t> numbers;
  for (size_t d = 0; d < count; ++d) numbers.emplace(matrix.devices[d].name, d);
  const auto find = [&](const std::string& name) {
    const auto at = numbers.find(name);
    return at == numbers.end() ? count : at->second;
  };
  for (const TopoRow& row : table.rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const size_t a = find(row.device), b = find(table.columns[i]);
      if (a < count && b < count) matrix.peer_access[a][b] = *access_of(row.cells[i]);
    }
  }
  add(matrix, FindingKind::kFound, table.line,
      "a matrix of peer access: it says what is allowed, not over which link");
}

/// "NIC0: mlx5_0" lines name the NICs; a legend that gives NV# another meaning is left aside.
void read_legends(const std::vector<TextLine>& lines, TopoMatrix& matrix) {
  for (const TextLine& line : lines) {
    const std::vector<std::string_view> words = words_of(line.text);
    if (words.size() == 2 && words[0].ends_with(':')) {
      for (TopoDevice& device : matrix.devices) {
        if (device.name + ":" == words[0]) device.alias = words[1];
      }
    }
    if (words.size() > 2 && words[1] == "=" && words[0].starts_with("NV") &&
        !contains(lower(line.text), "bonded")) {
      add(matrix, FindingKind::kIgnored, line.number,
          fmt::format("the legend's words on {}: the number counts links, not hops", words[0]));
    }
  }
}

/// The NICs that are nearer to a GPU than others are.
void describe_nearest_nics(TopoMatrix& matrix) {
  const auto nics = matrix.of_kind(TopoDeviceKind::kNic);
  if (nics.empty()) return;
  for (const size_t gpu : matrix.of_kind(TopoDeviceKind::kGpu)) {
    HopKind nearest = HopKind::kSys, farthest = HopKind::kUnknown;
    for (const size_t nic : nics) {
      nearest = std::min(nearest, matrix.hops[gpu][nic].kind);
      farthest = std::max(farthest, matrix.hops[gpu][nic].kind);
    }
    if (nearest == farthest || nearest == HopKind::kUnknown) continue;
    std::string names;
    for (const size_t nic : nics) {
      if (matrix.hops[gpu][nic].kind == nearest) names += " " + matrix.devices[nic].name;
    }
    add(matrix, FindingKind::kFound, 0,
        fmt::format("{} is nearest to{} ({})", matrix.devices[gpu].name, names,
                    HopClass{nearest, 0}.text()));
  }
}

void describe(TopoMatrix& matrix, int64_t line) {
  add(matrix, FindingKind::kFound, line,
      fmt::format("{}, {}", counted(matrix.of_kind(TopoDeviceKind::kGpu).size(), "GPU"),
                  counted(matrix.of_kind(TopoDeviceKind::kNic).size(), "NIC")));
  const auto gpus = matrix.of_kind(TopoDeviceKind::kGpu);
  add_pair_findings(matrix, line);
  if (!matrix.has_links()) {
    if (gpus.size() > 1) {
      add(matrix, FindingKind::kUnknown, 0, "over which links the GPUs are joined");
    }
    return;
  }
  const bool has_numa = std::any_of(matrix.devices.begin(), matrix.devices.end(),
                                    [](const TopoDevice& d) { return !d.numa.empty(); });
  if (!has_numa) add(matrix, FindingKind::kUnknown, 0, "the NUMA nodes of the GPUs");
  describe_nearest_nics(matrix);
  if (matrix.peer_access.empty()) return;
  for (size_t a : gpus) {
    for (size_t b : gpus) {
      if (a < b && matrix.peer_access[a][b] == PeerAccess::kNo) {
        add(matrix, FindingKind::kFound, 0,
            fmt::format("{} and {} have no peer access: their hops go through host memory",
                        matrix.devices[a].name, matrix.devices[b].name));
      }
    }
  }
}

bool is_rocm(const std::vector<TextLine>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const TextLine& line) {
    return contains(line.text, "ROCm System Management") || contains(line.text, "between two GPUs");
  });
}

}  // namespace

bool TopoMatrix::has_links() const {
  for (size_t i = 0; i < hops.size(); ++i) {
    for (size_t j = 0; j < hops.size(); ++j) {
      if (i != j && hops[i][j].kind != HopKind::kUnknown) return true;
    }
  }
  return false;
}

std::vector<size_t> TopoMatrix::of_kind(TopoDeviceKind kind) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].kind == kind) out.push_back(i);
  }
  return out;
}

void add_pair_findings(TopoMatrix& matrix, int64_t line) {
  const auto gpus = matrix.of_kind(TopoDeviceKind::kGpu);
  std::map<std::string, int> pairs;
  for (size_t a : gpus) {
    for (size_t b : gpus) {
      if (a < b && matrix.hops[a][b].kind != HopKind::kUnknown) ++pairs[matrix.hops[a][b].text()];
    }
  }
  for (const auto& [hop, count] : pairs) {
    matrix.findings.push_back(
        {FindingKind::kFound, fmt::format("{}: {} of GPUs", hop, counted(count, "pair")), line});
  }
}

TopoMatrix parse_topo_matrix(std::string_view text, const std::string& file) {
  const std::vector<TextLine> lines = split_lines(text, file);
  const std::vector<TopoTable> tables = find_topo_tables(lines, file);
  if (tables.empty()) {
    throw_usage(file + ": no topology matrix in it",
                "It should hold the output of `nvidia-smi topo -m`.");
  }
  if (is_rocm(lines)) return rocm_matrix(lines, tables, file);
  TopoMatrix matrix;
  for (const TopoTable& table : tables) {
    if (is_access_table(table)) continue;
    if (!matrix.devices.empty()) {
      add(matrix, FindingKind::kIgnored, table.line, "a second link matrix; the first is taken");
      continue;
    }
    read_links(table, file, matrix);
    matrix.tool = "nvidia-smi topo -m";
  }
  for (const TopoTable& table : tables) {
    if (is_access_table(table)) read_access(table, matrix);
  }
  if (matrix.tool.empty()) matrix.tool = "nvidia-smi topo -p2p";
  read_legends(lines, matrix);
  describe(matrix, tables[0].line);
  return matrix;
}

}  // namespace ring
