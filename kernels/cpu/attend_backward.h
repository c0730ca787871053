// Gradients of block attention on the CPU: adds one block of keys to dQ, dK and dV.
#pragma once

#include "kernels/cpu/attend.h"

namespace ring::cpu {

// Where token (or row) t of head h lies: t * token + h * head elements from the first. A head
// stride of 0 means contiguous (head, token, dim).
struct Strides {
  int64_t token = 0;
  int64_t head = 0;
};

// Tensors in shape.dtype; lse (head, row) natural log over *all* keys of the row, -inf where it
// sees none; delta (head, row) from compute_delta. fp32; both lie as `stats` says.
struct BackwardInput {
  ConstView q, k, v;
  ConstView d_out;  // (q_rows, heads, dim_v)
  const float* lse = nullptr;
  const float* delta = nullptr;
  Strides stats = {};
};

// Sums that the block is added to: dq (head, row, dim_qk), dk (kv_head, key, dim_qk), dv (kv_head,
// key, dim_v), fp32, in the order that the strides say; dim is contiguous.
struct BackwardOutput {
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
  Strides q = {}, k = {}, v = {};
};

// With P = exp(scale q.k - lse) and dS = P (d_out.v - delta): dq += scale dS k, dk += scale dS q,
// dv += P d_out, dk and dv summed over the query heads of a KV head. `spans` as for attend.
// Single-threaded and deterministic: the order of every sum depends on the shape alone.
void attend_backward(const AttendShape& shape, const BackwardInput& input, const KeySpan* spans,
                     BackwardOutput output, Workspace& workspace);

// delta (head, row) = sum over dim of out * d_out in fp32; both (q_rows, heads, dim_v) in
// shape.dtype. `delta` lies as `stats` says.
void compute_delta(const AttendShape& shape, ConstView out, ConstView d_out, float* delta,
                   Strides stats = {});

// Scratch of attend_backward at most, in bytes.
int64_t backward_workspace_bytes(const AttendShape& shape);

}  // namespace ring::cpu
