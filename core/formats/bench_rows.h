// BenchRows: the figures of a benchmark with their targets, as lines to read and as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ring {

struct BenchRow {
  std::string name;
  double value = 0;
  std::string unit;
  std::string target;  ///< "<= 0.4"; empty: for information.
  bool ok = true;
};
BenchRow row_at_most(std::string name, double value, std::string unit, double limit);
BenchRow row_at_least(std::string name, double value, std::string unit, double limit);

/// One line: name, value, unit, target, and whether it was met.
std::string bench_line(const BenchRow& row);
/// {"schema": 1, "benchmark": name, "rows": [...]}; target and ok are null without a target.
std::string bench_json(std::string_view benchmark, const std::vector<BenchRow>& rows);
/// The rows of such a document. Throws Error(kUsage) for anything else.
std::vector<BenchRow> parse_bench_rows(std::string_view json);

struct BenchOptions {
  std::string json_path;  ///< Empty: no file.
  bool is_quick = false;
};
/// [--json FILE] [--quick]. Throws Error(kUsage) for anything else.
BenchOptions bench_options(int argc, char** argv, const std::string& program);

/// Writes the file, where one is asked for, and gives the exit code: 0 when no target was missed.
int finish_bench(const BenchOptions& options, std::string_view benchmark,
                 const std::vector<BenchRow>& rows);

}  // namespace ring
