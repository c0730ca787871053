// Benchmark logs and tables of context-parallel attention and training.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/findings.h"

namespace ring {

/// One measured method in one configuration of an attention benchmark.
struct AttentionBenchRow {
  int64_t line = 0;
  int64_t nodes = 0, ranks_per_node = 0;
  int64_t seq_len = 0, heads = 0, kv_heads = 0, head_dim = 0, batch = 0;
  bool is_causal = false;
  bool is_backward = false;
  std::string method;          ///< As named in the log.
  int variant = 0;             ///< Number among unnamed rows under one name.
  double seconds = 0;          ///< Of one pass.
  double tflops_per_rank = 0;  ///< As stated.
};

struct AttentionBenchLog {
  std::vector<AttentionBenchRow> rows;
  Findings findings;
};

/// Logs with lines "da_config: SP=(nodes,ranks),...", "# method, fwd" and "mfu: ... s/iter". Throws
/// Error(kUsage) when there is none, or a row contradicts itself.
AttentionBenchLog parse_attention_bench(std::string_view text, const std::string& file);

/// A markdown table: its caption, header and rows as text.
struct MarkdownTable {
  int64_t line = 0;
  std::string caption;  ///< The last line of text before it.
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

struct TrainingBenchRow {
  int64_t line = 0;
  std::string caption;
  int64_t gpus = 0;  ///< 0: not stated.
  int64_t context_parallel = 0, data_parallel = 0;
  int64_t seq_len = 0;
  double tokens_per_s_per_gpu = 0;
  double memory_gib = 0;
};

struct TrainingBench {
  std::vector<TrainingBenchRow> rows;
  Findings findings;
};

std::vector<MarkdownTable> find_markdown_tables(std::string_view text, const std::string& file);
/// Tables with the columns Parallelism, Sequence Length, TPS/GPU and Memory. Throws Error(kUsage)
/// when there is none.
TrainingBench parse_training_bench(std::string_view text, const std::string& file);

}  // namespace ring
