#include "experiments/validation/published_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/formats/csv_table.h"
#include "core/formats/file_io.h"
#include "core/library.h"

namespace ring {
namespace fs = std::filesystem;
namespace {

std::optional<double> leading_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // "16 per GPU" and "1 (assumed)" state a number; "128K" and "2-4" state another one.
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || (!rest.empty() && rest.front() != ' ')) return std::nullopt;
  return value;
}

std::optional<int64_t> leading_count(const std::string& text) {
  const auto value = leading_number(text);
  if (!value || *value < 1 || *value > 1e15) return std::nullopt;
  return static_cast<int64_t>(*value);
}

PublishedRow read_row(const CsvTable& table, size_t row, const std::string& file) {
  const auto text = [&](std::string_view column) { return table.at(row, column); };
  const auto count = [&](std::string_view column) { return leading_count(table.at(row, column)); };
  PublishedRow out;
  out.file = file;
  out.id = text("id");
  out.gpu = text("gpu");
  out.link = text("link");
  out.link_bandwidth = text("link_bw_stated");
  out.impl = text("impl");
  out.algorithm = text("algorithm");
  out.cp = text("cp");
  out.dtype = text("dtype");
  out.causal = text("causal");
  out.pass = text("pass");
  out.metric = text("metric");
  out.unit = text("unit");
  out.value_kind = text("value_kind");
  out.note = text("note");
  out.gpus = count("n_gpus");
  out.nodes = count("nodes");
  out.tp = count("tp");
  // "local batch 1" and "not stated (1 assumed)" end with the number that was taken.
  const std::string& batch = text("batch");
  out.batch = batch.starts_with("local batch ") ? leading_count(batch.substr(12)) : count("batch");
  if (!out.batch && batch.find("1 assumed") != std::string::npos) out.batch = 1;
  out.seq = count("seqlen_total");
  out.seq_per_gpu = count("seqlen_per_gpu");
  out.heads = count("heads");
  out.kv_heads = count("kv_heads");
  out.head_dim = count("head_dim");
  out.layers = count("layers");
  out.value = leading_number(text("value"));
  return out;
}

/// One line of split.csv: rows of a file, from an id to an id, both empty for all.
struct Split {
  std::string file, first, last, role, grade;
};

std::vector<Split> read_split(const std::string& folder) {
  fs::path path = fs::path(folder) / "split.csv";
  if (!fs::exists(path)) path = fs::path(library_folder(LibraryKind::kPublished)) / "split.csv";
  std::vector<Split> splits;
  if (!fs::exists(path)) return splits;
  const CsvTable table = CsvTable::parse(read_file(path.string()), path.string());
  table.require({"file", "first", "last", "role", "grade", "why"});
  for (size_t row = 0; row < table.rows(); ++row) {
    splits.push_back({table.at(row, "file"), table.at(row, "first"), table.at(row, "last"),
                      table.at(row, "role"), table.at(row, "grade")});
    const std::string& role = splits.back().role;
    if (role != "judged" && role != "calibration") {
      throw_usage(fmt::format("{}:{}: role '{}' is neither judged nor calibration", table.name(),
                              table.line(row), role));
    }
  }
  return splits;
}

/// The number behind the last dash of an id: 12 of "USP-012".
int64_t id_number(const std::string& id) {
  const size_t dash = id.rfind('-');
  return leading_count(dash == std::string::npos ? id : id.substr(dash + 1)).value_or(0);
}

void apply_split(const std::vector<Split>& splits, PublishedRow& row) {
  for (const Split& split : splits) {
    if (split.file != row.file) continue;
    const int64_t number = id_number(row.id);
    if (!split.first.empty() &&
        (number < id_number(split.first) || number > id_number(split.last))) {
      continue;
    }
    row.role = split.role;
    row.grade = split.grade;
    // "A-/B": one node, several nodes.
    if (const size_t slash = row.grade.find('/'); slash != std::string::npos) {
      const bool is_one_node = row.nodes.value_or(1) == 1;
      row.grade = is_one_node ? row.grade.substr(0, slash) : row.grade.substr(slash + 1);
    }
    return;
  }
}

}  // namespace

std::vector<PublishedRow> read_published_rows(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    if (file.path().extension() == ".csv") paths.push_back(file.path());
  }
  if (error) throw_usage(fmt::format("{}: {}", folder, error.message()));
  std::sort(paths.begin(), paths.end());
  const std::vector<Split> splits = read_split(folder);
  std::vector<PublishedRow> rows;
  for (const fs::path& path : paths) {
    const CsvTable table = CsvTable::parse(read_file(path.string()), path.string());
    if (!table.has("algorithm") || !table.has("cp")) continue;  // Kernel and link files, split.
    table.require({"id", "gpu", "n_gpus", "algorithm", "cp", "metric", "value", "unit"});
    std::set<std::vector<std::string>> seen;
    for (size_t row = 0; row < table.rows(); ++row) {
      rows.push_back(read_row(table, row, path.stem().string()));
      rows.back().is_repeated = !seen.insert(table.cells(row)).second;
      apply_split(splits, rows.back());
    }
  }
  if (rows.empty()) {
    throw_usage(folder + ": no CSV file with published measurements",
                "files need the columns id, gpu, n_gpus, algorithm, cp, metric, value, unit, ...");
  }
  return rows;
}

}  // namespace ring
