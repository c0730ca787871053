// RankMemory: the tensors, receive buffers and attention states of one rank in an executor.
#pragma once

#include <array>
#include <vector>

#include "core/ring_program.h"
#include "kernels/backward_memory.h"
#include "kernels/cpu/attend.h"
#include "kernels/data.h"
#include "kernels/memory.h"
#include "kernels/transport/transport.h"

namespace ring {

/// K and V of some tokens: K (token, batch, kv_head, head_dim) and V (token, batch, kv_head,
/// head_dim_v), each contiguous, so that a run of tokens is one piece of each. In a program without
/// attention `k` alone holds plain bytes.
struct KvBuffer {
  Pages k, v;
};

/// One attention state: u (batch, head, row, dim_v), m and l (batch, head, row), fp32.
struct StateBuffer {
  Pages u, m, l;
};

struct RankMemory {
  /// Reserves memory for the rank without touching it.
  RankMemory(const RingProgram& program, int rank);

  /// Touches everything and fills Q, K and V; to be called by the thread that will use them.
  void fill(const RingProgram& program, int rank, const DataSource& data);
  /// Empties the rows and heads of `op.state` that the op names.
  void reset_state(const Op& op);

  const KvBuffer& buffer(int32_t index) const {
    return index == kHomeBuffer ? home : receive_buffers[static_cast<size_t>(index)];
  }
  Bytes bytes() const;

  // Sizes that views are made from.
  Problem problem;
  bool has_attention = false;
  int64_t rows = 0;

  Pages q;  ///< (row, batch, head, head_dim)
  KvBuffer home;
  std::vector<KvBuffer> receive_buffers;
  std::vector<StateBuffer> states;
  Pages out;  ///< (row, batch, head, head_dim_v), model dtype.
  Pages lse;  ///< (batch, head, row), fp32.
  BackwardMemory backward;
};

/// The state of one batch element, heads from `head` on, rows from `row` on.
cpu::AttendState state_view(const RankMemory& memory, int32_t state, int64_t batch, int64_t head,
                            int64_t row);

/// Calls `visit(batch, head, row, rows)` for the contiguous runs of state rows that the op names;
/// one run when it names all of them.
template <class Visit>
void for_row_runs(const RankMemory& memory, const Op& op, const Visit& visit) {
  const Problem& problem = memory.problem;
  const bool has_all_rows = op.q_begin == 0 && op.q_end == memory.rows;
  if (has_all_rows && op.head_begin == 0 && op.head_end == problem.heads) {
    visit(int64_t{0}, int64_t{0}, int64_t{0}, memory.rows * problem.batch * problem.heads);
    return;
  }
  for (int64_t batch = 0; batch < problem.batch; ++batch) {
    for (int64_t head = op.head_begin; head < op.head_end; ++head)
      visit(batch, head, op.q_begin, op.q_end - op.q_begin);
  }
}

/// The pieces of a message: K part, then V part of the tokens the op names, or what travels in the
/// backward pass, or plain bytes.
std::array<Part, kMaxParts> message_parts(const RankMemory& memory, const Op& op);

}  // namespace ring
