#include "core/formats/bench_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/formats/file_io.h"

namespace ring {

BenchRow row_at_most(std::string name, double value, std::string unit, double limit) {
  return {std::move(name), value, std::move(unit), fmt::format("<= {:g}", limit), value <= limit};
}

BenchRow row_at_least(std::string name, double value, std::string unit, double limit) {
  return {std::move(name), value, std::move(unit), fmt::format(">= {:g}", limit), value >= limit};
}

std::string bench_line(const BenchRow& row) {
  const std::string_view verdict = row.target.empty() ? "" : row.ok ? "ok" : "MISSED";
  return fmt::format("{:<46} {:>12.5g} {:<10} {:<12} {}\n", row.name, row.value, row.unit,
                     row.target, verdict);
}

std::string bench_json(std::string_view benchmark, const std::vector<BenchRow>& rows) {
  nlohmann::json list = nlohmann::json::array();
  for (const BenchRow& row : rows) {
    nlohmann::json entry = {{"name", row.name}, {"value", row.value}, {"unit", row.unit}};
    entry["target"] = row.target.empty() ? nlohmann::json() : nlohmann::json(row.target);
    entry["ok"] = row.target.empty() ? nlohmann::json() : nlohmann::json(row.ok);
    list.push_back(std::move(entry));
  }
  const nlohmann::json document = {
      {"schema", 1}, {"benchmark", std::string(benchmark)}, {"rows", std::move(list)}};
  return document.dump(2) + '\n';
}

std::vector<BenchRow> parse_bench_rows(std::string_view json) {
  std::vector<BenchRow> rows;
  try {
    const nlohmann::json document = nlohmann::json::parse(json);
    for (const nlohmann::json& entry : document.at("rows")) {
      BenchRow row{entry.at("name"), entry.at("value"), entry.at("unit"), {}, true};
      if (!entry.at("target").is_null()) {
        row.target = entry.at("target");
        row.ok = entry.at("ok");
      }
      rows.push_back(std::move(row));
    }
  } catch (const nlohmann::json::exception& error) {
    throw_usage(fmt::format("these are no rows of a benchmark: {}", error.what()));
  }
  return rows;
}

BenchOptions bench_options(int argc, char** argv, const std::string& program) {
  BenchOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--quick") {
      options.is_quick = true;
    } else if (argument == "--json" && i + 1 < argc) {
      options.json_path = argv[++i];
    } else {
      throw_usage(fmt::format("{}: unknown argument '{}'", program, argument),
                  program + " [--json FILE] [--quick]");
    }
  }
  return options;
}

int finish_bench(const BenchOptions& options, std::string_view benchmark,
                 const std::vector<BenchRow>& rows) {
  if (!options.json_path.empty()) write_file(options.json_path, bench_json(benchmark, rows));
  return std::all_of(rows.begin(), rows.end(), [](const BenchRow& row) { return row.ok; }) ? 0 : 1;
}

}  // namespace ring
