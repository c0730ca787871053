// RankMemory: the tensors, receive buffers and attention states of one rank in an executor.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/payload.h"
#include "core/ring_program.h"
#include "kernels/backward_memory.h"
#include "kernels/cpu/attend.h"
#include "kernels/data.h"
#include "kernels/memory.h"
#include "kernels/tensor_view.h"
#include "kernels/transport/transport.h"

namespace ring {

/// K and V of some tokens: K (token, batch, kv_head, head_dim) and V (token, batch, kv_head,
/// head_dim_v), each contiguous, so that a run of tokens is one piece of each. In a program without
/// attention `k` alone holds plain bytes.
///
/// A shaped buffer may hold Q (row, batch, head, head_dim) in `k` instead, or output (row, batch,
/// head, head_dim_v) in `k` and its lse (batch, head, row) in `v`, or the gradient of the output in
/// `k`; or a query side: Q in `k`, dO in `v` and (lse, delta) in `stats`; or gradients, fp32: dQ in
/// `k`, dK in `k` and dV in `v`.
struct KvBuffer {
  Pages k, v, stats;
  Payload payload = Payload::kKeyValue;
  HeadRange query_heads = {};  ///< Of a shaped buffer.
  Tokens tokens = 0;           ///< Of a shaped buffer.
};

/// One attention state: u (batch, head, row, dim_v), m and l (batch, head, row), fp32. A packed
/// one has the rows of the op that touches it.
struct StateBuffer {
  Pages u, m, l;
  bool is_packed = false;
  HeadRange heads = {};
};

/// Tensors of a payload that hold elements: K and V are two.
constexpr int tensors_of(Payload payload) {
  return payload == Payload::kKeyValue || payload == Payload::kKeyGradients ? 2 : 1;
}
/// Gradients are fp32, everything else that rows are copied of has the model dtype.
inline Bytes element_bytes(const Problem& problem, Payload payload) {
  return is_gradient(payload) ? 4 : size_bytes(problem.dtype);
}

/// Q, dO and the (lse, delta) pairs (row, batch, head) of some rows.
struct QuerySideView {
  TensorView q, d_out;
  float* stats = nullptr;
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
  /// Q, output, dO, K (part 0) or V (part 1), dQ, dK (part 0) or dV (part 1) of a buffer or of the
  /// home shard.
  TensorView tensor(Payload payload, int part, int32_t buffer) const;
  QuerySideView query_side(int32_t buffer) const;
  /// (batch, head, row) of the rows and heads of an output buffer or of the home shard.
  float* lse_of_output(int32_t buffer) const;
  /// After a partial result was received into the op's state: makes it a state again.
  void complete_partial(const Op& op);
  Bytes bytes() const;

  // Sizes that views are made from.
  Problem problem;
  bool has_attention = false;
  int64_t rows = 0;
  int32_t first_shaped_buffer = 0;

  Pages q;  ///< (row, batch, head, head_dim)
  KvBuffer home;
  std::vector<KvBuffer> receive_buffers;
  std::vector<StateBuffer> states;
  Pages out;  ///< (row, batch, head, head_dim_v), model dtype.
  Pages lse;  ///< (batch, head, row), fp32.
  BackwardMemory backward;

 private:
  TensorView gradient_tensor(Payload payload, int part, int32_t buffer) const;
  void fill_buffer(const DataSource& data, const TokenRanges& tokens, Payload payload,
                   int32_t buffer);
};

/// Rows of the op in a state, heads from `head` on; of one batch element.
cpu::AttendState state_view(const RankMemory& memory, const Op& op, int32_t state, int64_t batch,
                            int64_t head);
/// Whether the rows of all heads of the op lie one after another there.
bool is_contiguous(const RankMemory& memory, const Op& op, int32_t state);

/// Calls `visit(batch, head, rows)` for runs of state rows of the op that lie one after another in
/// each of the states; one run a batch element or for all of them where that is so.
template <class Visit>
void for_row_runs(const RankMemory& memory, const Op& op, std::span<const int32_t> states,
                  const Visit& visit) {
  bool is_all = true;
  for (const int32_t state : states) is_all = is_all && is_contiguous(memory, op, state);
  const int64_t rows = op.q_end - op.q_begin;
  for (int64_t batch = 0; batch < memory.problem.batch; ++batch) {
    if (is_all) {
      visit(batch, int64_t{op.head_begin}, rows * (op.head_end - op.head_begin));
      continue;
    }
    for (int64_t head = op.head_begin; head < op.head_end; ++head) visit(batch, head, rows);
  }
}

/// The pieces of a message: K part, then V part of the tokens the op names; or Q or output rows; or
/// output and lse of a partial result; or what travels in the backward pass; or plain bytes.
std::array<Part, kMaxParts> message_parts(const RankMemory& memory, const Op& op);

}  // namespace ring
