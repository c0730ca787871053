#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/formats/import/bench_log.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

/// The numbers in "KEY=(a,b)" or "KEY=a".
std::vector<int64_t> numbers_after(std::string_view line, const std::string& key) {
  std::vector<int64_t> numbers;
  const auto rest = text_after(line, key + "=");
  if (!rest) return numbers;
  std::string_view part = *rest;
  const bool is_list = part.starts_with("(");
  if (is_list) part = part.substr(1, part.find(')') - 1);
  while (!part.empty()) {
    const auto number = leading_whole(trimmed(part));
    if (!number) break;
    numbers.push_back(*number);
    const size_t comma = part.find(',');
    if (!is_list || comma == std::string_view::npos) break;
    part = part.substr(comma + 1);
  }
  return numbers;
}

/// The configuration of "da_config: SP=(2,8),Sg=..,S=(..),Nh=(..),bs=1,D=128,causal=True".
std::optional<AttentionBenchRow> config_of(std::string_view line) {
  const auto sp = numbers_after(line, "SP"), seq = numbers_after(line, ",S");
  const auto heads = numbers_after(line, "Nh"), dim = numbers_after(line, ",D");
  const auto batch = numbers_after(line, "bs");
  if (sp.size() != 2 || seq.empty() || heads.empty() || dim.empty()) return std::nullopt;
  AttentionBenchRow row;
  row.nodes = sp[0];
  row.ranks_per_node = sp[1];
  row.seq_len = seq[0];
  row.heads = heads[0];
  row.kv_heads = heads.size() > 1 ? heads[1] : heads[0];
  row.head_dim = dim[0];
  row.batch = batch.empty() ? 1 : batch[0];
  row.is_causal = contains(line, "causal=True");
  return row;
}

/// Whether all counts are positive and what can be run, so that products of them are whole numbers.
bool is_possible(const AttentionBenchRow& row) {
  constexpr int64_t kMost = 1 << 20;
  for (const int64_t count :
       {row.nodes, row.ranks_per_node, row.heads, row.kv_heads, row.head_dim, row.batch}) {
    if (count < 1 || count > kMost) return false;
  }
  return row.seq_len >= 1 && row.seq_len <= kMost * kMost;
}

/// The number before "s/iter" and the one after "mfu:".
bool take_times(std::string_view line, AttentionBenchRow& row) {
  const std::vector<std::string_view> words = words_of(line);
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const auto value = number_of(words[i + (words[i] == "mfu:" ? 1 : 0)]);
    if (!value) continue;
    if (words[i] == "mfu:") row.tflops_per_rank = *value;
    if (words[i + 1].starts_with("s/iter")) row.seconds = *value;
  }
  return row.seconds > 0;
}

/// What the stated rate should be: 4 S^2 D heads (half when causal), twice that backward.
double expected_tflops(const AttentionBenchRow& row) {
  const auto s = static_cast<double>(row.seq_len);
  const double flops = 4 * s * s * static_cast<double>(row.head_dim * row.heads * row.batch) *
                       (row.is_causal ? 0.5 : 1) * (row.is_backward ? 2 : 1);
  return flops / row.seconds / static_cast<double>(row.nodes * row.ranks_per_node) / 1e12;
}

}  // namespace

AttentionBenchLog parse_attention_bench(std::string_view text, const std::string& file) {
  AttentionBenchLog out;
  std::optional<AttentionBenchRow> config;
  std::string method;
  bool is_backward = false;
  int variant = 0;
  int64_t odd_rates = 0;
  std::set<std::string> methods;
  for (const TextLine& line : split_lines(text, file)) {
    const std::string_view content = trimmed(line.text);
    if (content.starts_with("da_config:")) {
      config = config_of(content);
      if (!config) throw_usage(fmt::format("{}:{}: a da_config that is cut", file, line.number));
      if (!is_possible(*config))
        throw_usage(fmt::format("{}:{}: a da_config with counts that cannot be", file, line.number),
                    "nodes, ranks, heads, head dims and batches are 1 to 1Mi");
      method.clear();
    } else if (const auto fob = text_after(content, "fob=");
               fob && content.starts_with("causal=")) {
      is_backward = fob->starts_with("1");
    } else if (content.starts_with("# ")) {
      method = trimmed(content.substr(2, content.find(',') - 2));
      variant = 0;
      if (contains(content, ", bwd")) is_backward = true;
      if (contains(content, ", fwd")) is_backward = false;
    } else if (content.starts_with("mfu:") && config && !method.empty()) {
      AttentionBenchRow row = *config;
      row.line = line.number;
      row.method = method;
      row.is_backward = is_backward;
      row.variant = variant++;
      if (!take_times(content, row)) {
        if (line.is_cut) break;
        throw_usage(fmt::format("{}:{}: no time in it", file, line.number));
      }
      const double expected = expected_tflops(row);
      if (std::abs(row.tflops_per_rank - expected) > 0.05 * expected + 0.01) ++odd_rates;
      methods.insert(row.method);
      out.rows.push_back(std::move(row));
    }
  }
  if (out.rows.empty()) throw_usage(file + ": no measured row of an attention benchmark in it");
  out.findings.push_back(
      {FindingKind::kFound,
       fmt::format("{} rows; methods {}", out.rows.size(), fmt::join(methods, ", ")), 0});
  if (odd_rates > 0) {
    out.findings.push_back(
        {FindingKind::kIgnored,
         fmt::format("the stated rates of {} rows: they do not follow from length and time",
                     odd_rates),
         0});
  }
  for (const AttentionBenchRow& row : out.rows) {
    if (row.variant == 1) {
      out.findings.push_back({FindingKind::kUnknown,
                              fmt::format("what tells the unnamed rows under {} apart", row.method),
                              row.line});
      break;
    }
  }
  out.findings.push_back({FindingKind::kUnknown, "the dtype and the GPU model", 0});
  return out;
}

}  // namespace ring
