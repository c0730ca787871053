#include "core/formats/import/nsys_kernels.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

constexpr size_t kNumbers = 8;  ///< Columns before the name.

/// The fields of a CSV line; quotes may hold commas, and two quotes stand for one.
std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields(1);
  bool is_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (line[i] == '"') {
      is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return fields;
}

/// Eight numbers and the name that follows them in a table.
std::vector<std::string> table_fields(std::string_view line) {
  std::vector<std::string> fields;
  std::string_view rest = trimmed(line);
  while (fields.size() < kNumbers && !rest.empty()) {
    const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    fields.emplace_back(rest.substr(0, end));
    rest = trimmed(rest.substr(end));
  }
  if (!rest.empty()) fields.emplace_back(rest);
  return fields;
}

std::optional<KernelSummaryRow> row_of(const std::vector<std::string>& fields) {
  if (fields.size() != kNumbers + 1 || fields.back().empty()) return std::nullopt;
  std::vector<double> numbers;
  for (size_t i = 0; i < kNumbers; ++i) {
    const auto value = number_of(fields[i]);
    if (!value || *value < 0) return std::nullopt;
    numbers.push_back(*value);
  }
  const auto total = whole_of(fields[1]), count = whole_of(fields[2]);
  if (!total || !count || *count < 1) return std::nullopt;
  KernelSummaryRow row{0,          numbers[0], *total,     *count,        numbers[3], numbers[4],
                       numbers[5], numbers[6], numbers[7], fields.back(), false};
  row.is_name_cut = row.name.ends_with("\xe2\x80\xa6") || row.name.ends_with("...");
  return row;
}

/// Mean times count is the total, to the decimal that is printed.
void check_row(const KernelSummaryRow& row, const std::string& where) {
  const double sum = row.mean_ns * static_cast<double>(row.count);
  const double slack = 0.051 * static_cast<double>(row.count) + 1;
  if (std::abs(sum - static_cast<double>(row.total_ns)) > slack) {
    throw_usage(fmt::format("{}: {} calls of {} ns on average are not {} ns", where, row.count,
                            row.mean_ns, row.total_ns));
  }
}

bool is_header(std::string_view line) {
  return contains(line, "Time (%)") && contains(line, "Total Time (ns)") &&
         contains(line, "Instances") && contains(line, "Name");
}

void describe(KernelSummary& out) {
  const auto add = [&](FindingKind kind, std::string text) {
    out.findings.push_back({kind, std::move(text), 0});
  };
  add(FindingKind::kFound,
      fmt::format("{} kernels, {} ns in all rows", out.rows.size(), out.total_ns()));
  double percent = 0;
  bool has_cut_names = false;
  for (const KernelSummaryRow& row : out.rows) {
    percent += row.percent;
    has_cut_names = has_cut_names || row.is_name_cut;
  }
  if (percent < 99) {
    add(FindingKind::kUnknown, fmt::format("the kernels of the remaining {:.1f} %", 100 - percent));
  }
  if (has_cut_names) add(FindingKind::kIgnored, "the ends of names that were cut with an ellipsis");
  add(FindingKind::kUnknown, "when the kernels ran: a summary has no overlap");
}

}  // namespace

int64_t KernelSummary::total_ns() const {
  int64_t total = 0;
  for (const KernelSummaryRow& row : rows) total += row.total_ns;
  return total;
}

KernelSummary parse_nsys_kernels(std::string_view text, const std::string& file) {
  KernelSummary out;
  bool has_header = false, is_csv = false, is_over = false;
  for (const TextLine& line : split_lines(text, file)) {
    const std::string where = fmt::format("{}:{}", file, line.number);
    if (is_header(line.text)) {
      if (has_header) throw_usage(where + ": a second summary", "Give one summary a file.");
      has_header = true;
      is_csv = contains(line.text, "Time (%),");
      continue;
    }
    const std::string_view content = trimmed(line.text);
    if (!has_header || is_over || content.empty() || content.starts_with("---")) {
      is_over = is_over || (content.empty() && !out.rows.empty());
      continue;
    }
    auto row = row_of(is_csv ? csv_fields(content) : table_fields(content));
    if (row) {
      check_row(*row, where);
      row->line = line.number;
      out.rows.push_back(std::move(*row));
    } else if (number_of(words_of(content)[0].substr(0, words_of(content)[0].find(',')))) {
      out.is_whole = false;
      out.findings.push_back({FindingKind::kIgnored, "a row that is cut", line.number});
    } else {
      is_over = true;
    }
  }
  if (!has_header) throw_usage(file + ": no kernel summary of nsys in it");
  if (out.rows.empty()) throw_usage(file + ": the kernel summary has no whole row");
  describe(out);
  return out;
}

}  // namespace ring
