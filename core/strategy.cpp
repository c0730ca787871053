#include "core/strategy.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"
#include "core/legality.h"
#include "core/mask_partition.h"
#include "core/partition.h"

namespace ring {

// A strategy is one file in core/strategies/ that defines its function, and one line here.
// clang-format off
#define RING_STRATEGIES(strategy) \
  strategy(pass_kv_strategy) \
  strategy(pass_q_strategy) \
  strategy(bidirectional_ring_strategy) \
  strategy(double_ring_strategy) \
  strategy(multi_ring_strategy) \
  strategy(all_gather_kv_strategy) \
  strategy(ulysses_strategy) \
  strategy(ulysses_ring_strategy) \
  strategy(tensor_parallel_strategy) \
  strategy(tree_decode_strategy) \
  strategy(local_attention_strategy) \
  strategy(flash_strategy) \
  strategy(chunked_strategy) \
  strategy(naive_strategy)
// clang-format on

#define RING_DECLARE_STRATEGY(make) Strategy make();
RING_STRATEGIES(RING_DECLARE_STRATEGY)
#undef RING_DECLARE_STRATEGY

namespace {

void validate_backward(const Problem& problem, const Tuning& tuning) {
  if (tuning.accumulation_steps < 1) {
    throw_usage(
        fmt::format("accumulation is {}; it must be at least 1", tuning.accumulation_steps));
  }
  if (tuning.optimizer_gap_ps < 0) throw_usage("the optimizer gap is negative");
  if (has_backward(problem.pass)) return;
  if (tuning.backward != BackwardMoves::kAuto || tuning.accumulation_steps > 1 ||
      tuning.optimizer_gap_ps > 0) {
    throw_usage("what moves backward, accumulation and the optimizer gap need a backward pass",
                "choose --pass forward+backward or backward");
  }
}

void validate_tuning(const Problem& problem, const Tuning& tuning) {
  const auto positive = [](int64_t value, std::string_view what) {
    if (value < 1) throw_usage(fmt::format("{} is {}; it must be at least 1", what, value));
  };
  positive(tuning.ranks, "ranks");
  positive(tuning.block_tokens, "block");
  positive(tuning.pipeline_depth, "depth");
  positive(tuning.lanes, "lanes");
  if (tuning.blocks_per_message < 0) {
    throw_usage(fmt::format("blocks-per-message is {}; it must be 0 (the whole shard) or more",
                            tuning.blocks_per_message));
  }
  static constexpr int kMostLanes = 1024;
  if (tuning.lanes > kMostLanes || tuning.pipeline_depth > (1 << 20)) {
    throw_usage(
        fmt::format("lanes {} or depth {} is too large", tuning.lanes, tuning.pipeline_depth),
        "at most 1024 lanes and a depth of 1048576");
  }
  validate_backward(problem, tuning);
  if (problem.seq_len() < 1) throw_usage("the sequence has no token");
  static constexpr int64_t kMostBlocks = int64_t{1} << 24;
  if (problem.seq_len() / tuning.ranks / tuning.block_tokens > kMostBlocks) {
    throw_usage(fmt::format("blocks of {} cut the shards of {} tokens over {} ranks into more than "
                            "{} each",
                            tuning.block_tokens, problem.seq_len(), tuning.ranks, kMostBlocks),
                "choose larger blocks or more ranks");
  }
}

/// In deterministic mode shards must consist of whole blocks of the global sequence.
Partition deterministic_partition(const Problem& problem, const Tuning& tuning) {
  const int64_t unit = tuning.block_tokens, seq_len = problem.seq_len();
  if (tuning.partition.starts_with("striped") || tuning.partition.starts_with("uneven") ||
      is_made_for_mask(tuning.partition)) {
    Partition partition = make_partition(tuning.partition, problem.mask, tuning.ranks);
    for (int rank = 0; rank < partition.ranks(); ++rank) {
      for (const AffineRange& range : partition.shard(rank)) {
        const int64_t end = range.last() + 1;
        if (range.stride == 1 && range.begin % unit == 0 && (end % unit == 0 || end == seq_len)) {
          continue;
        }
        throw_usage(fmt::format("deterministic mode needs shards of whole blocks of {} tokens; "
                                "partition '{}' cuts a block at rank {}",
                                unit, tuning.partition, rank),
                    "choose stripes or lengths that are multiples of the block, or contiguous or "
                    "zigzag, which are then cut at blocks");
      }
    }
    return partition;
  }
  const int64_t chunks = (seq_len + unit - 1) / unit;
  const Partition coarse = Partition::parse(tuning.partition, chunks, tuning.ranks);
  std::vector<TokenRanges> shards(static_cast<size_t>(tuning.ranks));
  for (int rank = 0; rank < tuning.ranks; ++rank) {
    for (const AffineRange& range : coarse.shard(rank)) {
      const int64_t begin = range.begin * unit;
      const int64_t end = std::min((range.begin + range.count) * unit, seq_len);
      shards[static_cast<size_t>(rank)].push_back({begin, end - begin, 1});
    }
  }
  return Partition::from_ranges(tuning.partition, seq_len, std::move(shards));
}

Partition partition_for(const Problem& problem, const Tuning& tuning) {
  if (tuning.is_deterministic) return deterministic_partition(problem, tuning);
  return make_partition(tuning.partition, problem.mask, tuning.ranks);
}

}  // namespace

std::span<const Strategy> all_strategies() {
  static const std::array kStrategies = {
#define RING_MAKE_STRATEGY(make) make(),
      RING_STRATEGIES(RING_MAKE_STRATEGY)
#undef RING_MAKE_STRATEGY
  };
  return kStrategies;
}

const Strategy& find_strategy(std::string_view text) {
  const std::string_view name = text.substr(0, text.find(':'));
  std::vector<std::string_view> names;
  for (const Strategy& strategy : all_strategies()) {
    if (strategy.name == name && strategy.parameter.empty() && name != text) {
      throw_usage(fmt::format("strategy '{}': {} takes no parameter", text, name));
    }
    if (strategy.name == name) return strategy;
    names.push_back(strategy.name);
  }
  const std::string nearest = nearest_spelling(name, names.data(), static_cast<int>(names.size()));
  throw_usage(fmt::format("strategy '{}' is not known", text),
              fmt::format("allowed: {}{}", fmt::join(names, ", "),
                          nearest.empty() ? "" : "; did you mean " + nearest + "?"));
}

std::unique_ptr<ProgramSource> plan_source(const Problem& problem, const Tuning& tuning) {
  validate(problem);
  validate_tuning(problem, tuning);
  try {
    return plan_exactly(problem, tuning);
  } catch (const Error& error) {
    throw refusal_of(problem, tuning, error);
  }
}

std::unique_ptr<ProgramSource> plan_exactly(const Problem& problem, const Tuning& tuning) {
  const Strategy& strategy = find_strategy(tuning.strategy);
  return strategy.make(problem, tuning, partition_for(problem, tuning));
}

RingProgram plan(const Problem& problem, const Tuning& tuning) {
  const std::unique_ptr<ProgramSource> source = plan_source(problem, tuning);  // Validates first.
  RingProgram made = materialize(*source);
  RingProgram program = outline_of(problem, tuning);
  program.lanes = made.lanes;
  program.rank_programs = std::move(made.rank_programs);
  program.notes = source->notes();
  program.groups = std::move(made.groups);
  program.skips_pairs = made.skips_pairs;
  if (const Partition* const own = source->partition(); own != nullptr) program.partition = *own;
  return program;
}

RingProgram outline_of(const Problem& problem, const Tuning& tuning) {
  RingProgram outline;
  outline.name = fmt::format("{} {} x{}", tuning.strategy, tuning.partition, tuning.ranks);
  outline.has_attention = true;
  outline.problem = problem;
  outline.tuning = tuning;
  outline.partition = partition_for(problem, tuning);
  return outline;
}

}  // namespace ring
