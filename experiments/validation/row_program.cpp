#include "experiments/validation/row_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/strategy.h"

namespace ring {
namespace {

/// One kernel a shard, and what travels backward as the stack has it.
Tuning tuning_of(const RowCase& row, const Stack& stack, Pass pass) {
  Tuning tuning;
  tuning.strategy =
      row.layout == Layout::kDoubleRing ? fmt::format("double-ring:{}", row.inner) : "pass-kv";
  tuning.ranks = row.ring;
  tuning.partition = row.partition;
  tuning.block_tokens = std::max<int64_t>(1, row.problem.seq_len());
  if (has_backward(pass)) tuning.backward = stack.backward;
  return tuning;
}

bool are_heads_even(const RowCase& row) { return row.problem.kv_heads % row.ulysses == 0; }

/// Elements of Q, K, V and the output that a GPU holds, with its copies of shared KV heads.
double exchanged_elements(const RowCase& row) {
  const Problem& problem = row.problem;
  const int64_t kv_heads = std::max<int64_t>(problem.kv_heads, row.ulysses);
  return static_cast<double>(problem.batch * (problem.heads + kv_heads) *
                             (problem.head_dim + problem.head_dim_v)) *
         static_cast<double>(problem.seq_len()) / row.gpus;
}

}  // namespace

RingProgram ring_program(const RowCase& row, const Stack& stack, Pass pass) {
  Problem problem = row.problem;
  problem.heads /= row.ulysses;
  problem.kv_heads = std::max<int64_t>(1, problem.kv_heads / row.ulysses);
  problem.pass = pass;
  RingProgram program = plan(problem, tuning_of(row, stack, pass));
  for (RankProgram& rank : program.rank_programs) {
    for (Op& op : rank.ops) {
      // Sent, received or added.
      if (is_gradient(op.payload)) op.bytes = op.bytes * stack.gradient_element_bytes / 4;
    }
  }
  return program;
}

RingProgram exchange_program(const RowCase& row) {
  Tuning tuning = tuning_of(row, find_stack(row.stack), Pass::kForward);
  tuning.ranks = row.gpus;
  const std::string rule = are_heads_even(row) ? "" : "repeat";
  if (row.ring == 1) {
    tuning.strategy = rule.empty() ? "ulysses" : "ulysses:" + rule;
    tuning.partition = "contiguous";  // Everybody gets all tokens of its heads.
  } else {
    if (tuning.partition.starts_with("striped")) tuning.partition = "zigzag";
    tuning.strategy =
        fmt::format("ulysses-ring:{}{}{}", row.ulysses, rule.empty() ? "" : ",", rule);
  }
  tuning.lanes = row.ulysses - 1;  // All mates at once.
  return plan(row.problem, tuning);
}

void keep_exchange_only(int ulysses, RingProgram& program) {
  for (int rank = 0; rank < program.ranks(); ++rank) {
    for (Op& op : program.rank_programs[static_cast<size_t>(rank)].ops) {
      if (op.kind != OpKind::kSend && op.kind != OpKind::kReceive) {
        op.kind = OpKind::kCompute;
        op.fixed_ps = 0;
      } else if (op.peer / ulysses != rank / ulysses) {
        op.bytes = 0;
      }
    }
  }
}

void place_ring(const RowCase& row, Machine& machine) {
  std::vector<int> processors;
  for (int rank = 0; rank < row.ring; ++rank) {
    const int gpu = row.is_ulysses_across_nodes ? rank : rank * row.ulysses;
    processors.push_back(machine.processors[static_cast<size_t>(gpu)]);
  }
  machine.processors = std::move(processors);
}

void place_groups(const RowCase& row, Machine& machine) {
  std::vector<int> processors;
  for (int rank = 0; rank < row.gpus; ++rank) {
    const int group = rank / row.ulysses, member = rank % row.ulysses;
    const int gpu = row.is_ulysses_across_nodes ? member * row.ring + group : rank;
    processors.push_back(machine.processors[static_cast<size_t>(gpu)]);
  }
  machine.processors = std::move(processors);
}

double layout_seconds(const RowCase& row, const Stack& stack, const Machine& machine) {
  // Before and after the calls that bring Q, K and V and the one that brings the output.
  const int launches = 2 * (row.all_to_all_calls + 1);
  return exchanged_elements(row) * stack.layout_bytes / machine.merge_bytes_per_s +
         launches * kShortLaunchSeconds;
}

}  // namespace ring
