#include "experiments/demo_configurations.h"

#include <algorithm>

namespace ring {

namespace {

struct Heads {
  int64_t query, kv, dim;
};
constexpr Heads kEightHeads = {8, 8, 128};
constexpr Heads kSmallHeads = {8, 8, 64};
/// The attention of an 8B Llama: 32 query heads over 8 KV heads of 128.
constexpr Heads kLlama8b = {32, 8, 128};

struct Row {
  const char* name;
  Heads heads;
  int64_t seq_len;
  bool is_causal;
  DType dtype;
  int ranks;
  const char* partition;
  int64_t block_tokens;
  int64_t blocks_per_message;
  int depth;
};

constexpr Row kRows[] = {
    {"2-zigzag-256", kEightHeads, 4096, true, DType::kF32, 2, "zigzag", 256, 0, 2},
    {"2-contiguous-512", kEightHeads, 4096, true, DType::kF32, 2, "contiguous", 512, 0, 2},
    {"2-full-1024", kEightHeads, 3072, false, DType::kF32, 2, "contiguous", 1024, 0, 2},
    {"2-full-64-deep", kSmallHeads, 3072, false, DType::kF32, 2, "contiguous", 64, 4, 4},
    {"4-zigzag-128", kEightHeads, 4096, true, DType::kF32, 4, "zigzag", 128, 0, 2},
    {"4-zigzag-256-deep", kEightHeads, 4096, true, DType::kF32, 4, "zigzag", 256, 2, 4},
    {"4-contiguous-512", kEightHeads, 4096, true, DType::kF32, 4, "contiguous", 512, 0, 4},
    {"4-full-1024", kEightHeads, 4096, false, DType::kBF16, 4, "contiguous", 1024, 0, 2},
    {"4-uneven-192", kEightHeads, 4999, true, DType::kF32, 4, "zigzag", 192, 0, 2},
    {"llama8b-2-512", kLlama8b, 2048, true, DType::kBF16, 2, "zigzag", 512, 0, 2},
    {"llama8b-4-512", kLlama8b, 4096, true, DType::kBF16, 4, "zigzag", 512, 0, 2},
};

struct BackwardRow {
  Row row;
  const char* strategy;
  BackwardMoves moves;
  Pass pass;
};

constexpr BackwardRow kBackwardRows[] = {
    {{"back-2-zigzag-256", kEightHeads, 2048, true, DType::kF32, 2, "zigzag", 256, 0, 2},
     "pass-kv",
     BackwardMoves::kKeys,
     Pass::kBackward},
    {{"back-2-queries-256", kEightHeads, 2048, true, DType::kF32, 2, "zigzag", 256, 0, 2},
     "pass-kv",
     BackwardMoves::kQueries,
     Pass::kBackward},
    {{"back-2-full-512", kSmallHeads, 2048, false, DType::kF32, 2, "contiguous", 512, 0, 2},
     "pass-kv",
     BackwardMoves::kAuto,
     Pass::kForwardBackward},
    {{"back-4-zigzag-128", kEightHeads, 2048, true, DType::kF32, 4, "zigzag", 128, 2, 4},
     "pass-kv",
     BackwardMoves::kKeys,
     Pass::kBackward},
    {{"back-4-gather-256", kEightHeads, 2048, true, DType::kBF16, 4, "zigzag", 256, 0, 2},
     "all-gather-kv",
     BackwardMoves::kKeys,
     Pass::kBackward},
    {{"back-4-double-256", kSmallHeads, 2048, true, DType::kF32, 4, "contiguous", 256, 0, 2},
     "double-ring:2",
     BackwardMoves::kKeys,
     Pass::kForwardBackward},
    {{"back-3-multi-192", kEightHeads, 1900, true, DType::kF32, 3, "zigzag", 192, 1, 2},
     "multi-ring",
     BackwardMoves::kAuto,
     Pass::kBackward},
    {{"back-llama8b-2-512", kLlama8b, 1024, true, DType::kBF16, 2, "zigzag", 512, 0, 2},
     "pass-kv",
     BackwardMoves::kAuto,
     Pass::kForwardBackward},
};

DemoConfiguration configuration_of(const Row& row, bool is_small) {
  DemoConfiguration configuration;
  configuration.name = row.name;
  const int64_t seq_len = is_small ? row.seq_len / 4 : row.seq_len;
  Problem& problem = configuration.problem;
  problem.heads = row.heads.query;
  problem.kv_heads = row.heads.kv;
  problem.head_dim = problem.head_dim_v = row.heads.dim;
  problem.mask = row.is_causal ? Mask::causal(seq_len) : Mask::full(seq_len);
  problem.dtype = row.dtype;
  Tuning& tuning = configuration.tuning;
  tuning.ranks = row.ranks;
  tuning.partition = row.partition;
  tuning.block_tokens = row.block_tokens;
  tuning.blocks_per_message = row.blocks_per_message;
  tuning.pipeline_depth = row.depth;
  return configuration;
}

}  // namespace

std::vector<DemoConfiguration> demo_configurations(bool is_small) {
  std::vector<DemoConfiguration> configurations;
  for (const Row& row : kRows) configurations.push_back(configuration_of(row, is_small));
  return configurations;
}

std::vector<DemoConfiguration> backward_demo_configurations(bool is_small) {
  std::vector<DemoConfiguration> configurations;
  for (const BackwardRow& row : kBackwardRows) {
    DemoConfiguration configuration = configuration_of(row.row, is_small);
    configuration.problem.pass = row.pass;
    configuration.tuning.strategy = row.strategy;
    configuration.tuning.backward = row.moves;
    configurations.push_back(std::move(configuration));
  }
  return configurations;
}

}  // namespace ring
