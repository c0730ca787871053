#include "core/formats/import/rocm_matrix.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace ring {
namespace {

std::vector<std::vector<int>> numbers_of(const TopoTable& table) {
  std::vector<std::vector<int>> out;
  for (const TopoRow& row : table.rows) {
    out.emplace_back();
    for (const std::string& cell : row.cells) {
      out.back().push_back(static_cast<int>(whole_of(cell).value_or(0)));
    }
  }
  return out;
}

HopClass rocm_hop(const std::string& cell) {
  if (cell == "XGMI") return {HopKind::kXgmi, 0};
  if (cell == "PCIE") return {HopKind::kPcie, 0};
  return {};
}

}  // namespace

TopoMatrix rocm_matrix(const std::vector<TextLine>& lines, const std::vector<TopoTable>& tables,
                       const std::string& file) {
  TopoMatrix matrix;
  matrix.tool = "rocm-smi";
  for (const std::string& column : tables[0].columns) {
    matrix.devices.push_back({column, "", TopoDeviceKind::kGpu, "", {}});
  }
  const size_t count = matrix.devices.size();
  matrix.hops.assign(count, std::vector<HopClass>(count));
  bool has_types = false;
  for (const TopoTable& table : tables) {
    if (table.columns != tables[0].columns || table.rows.size() != table.columns.size()) {
      throw_usage(fmt::format("{}:{}: the matrices are not of the same GPUs", file, table.line));
    }
    if (contains(table.title, "Weight")) matrix.rocm_weights = numbers_of(table);
    if (contains(table.title, "Hops")) matrix.rocm_hops = numbers_of(table);
    if (!contains(table.title, "Link Type")) continue;
    has_types = true;
    for (const TopoRow& row : table.rows) {
      const auto at =
          static_cast<size_t>(std::find(table.columns.begin(), table.columns.end(), row.device) -
                              table.columns.begin());
      for (size_t i = 0; i < row.cells.size(); ++i) {
        matrix.hops[at][i] = at == i ? HopClass{HopKind::kSelf} : rocm_hop(row.cells[i]);
      }
    }
  }
  for (const TextLine& line : lines) {
    const auto rest = text_after(line.text, "GPU[");
    const auto node = text_after(line.text, "Numa Node:");
    if (!rest || !node) continue;
    const auto index = leading_whole(*rest), numa = whole_of(trimmed(*node));
    if (index && numa && *index < static_cast<int64_t>(matrix.devices.size())) {
      matrix.devices[static_cast<size_t>(*index)].numa = {static_cast<int>(*numa)};
    }
  }
  matrix.findings.push_back({FindingKind::kFound,
                             fmt::format("output of rocm-smi: {} GPUs", matrix.devices.size()),
                             tables[0].line});
  add_pair_findings(matrix, tables[0].line);
  if (!has_types) {
    matrix.findings.push_back({FindingKind::kUnknown, "the link types of the GPUs", 0});
  }
  return matrix;
}

}  // namespace ring
