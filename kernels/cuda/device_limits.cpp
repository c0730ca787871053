#include "kernels/cuda/device_limits.h"

#include <algorithm>

#include "core/error.h"

namespace ring::cuda {
namespace {

/// What no kernel does, or no process can look up.
void require_ops(const RingProgram& program, bool has_foreign) {
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) {
      if (computes_pairs(op.kind) && op.method == AttendMethod::kNaive)
        throw Error(ErrorKind::kUnavailable, "GPUs do not run " + program.tuning.strategy,
                    "strategies that attend by tiles run");
      if (op.payload == Payload::kState)
        throw Error(ErrorKind::kUnavailable,
                    "GPUs do not run " + program.tuning.strategy + " in deterministic mode yet",
                    "leave out --deterministic, or use a strategy that passes K and V");
      const bool is_elsewhere = op.kind == OpKind::kFinalize && op.buffer != kHomeBuffer;
      if (has_foreign && is_elsewhere && op.payload != Payload::kPartial)
        throw Error(
            ErrorKind::kUnavailable, "several processes do not run " + program.tuning.strategy,
            "one process runs it on all GPUs of its host: start ringscope without mpirun or srun");
    }
  }
}

}  // namespace

void require_for_devices(const RingProgram& program, const GpuOptions& options) {
  if (!program.has_attention) return;
  const Problem& problem = program.problem;
  if (problem.dtype == DType::kF32)
    throw Error(ErrorKind::kUnavailable, "the kernels of GPUs do not take fp32",
                "choose bf16 or fp16");
  constexpr int64_t kMostHeads = 65536;  // inverse_of is exact below it.
  if (problem.heads * (problem.heads / problem.kv_heads) >= kMostHeads)
    throw Error(ErrorKind::kUnavailable, "too many query heads for the kernels of GPUs");
  if (!(problem.softmax_scale() > 0))
    throw Error(ErrorKind::kUnavailable, "the kernels of GPUs take a positive softmax scale only");
  const bool has_foreign = std::count(options.devices.begin(), options.devices.end(), -1) > 0;
  require_ops(program, has_foreign);
  if (has_foreign && options.carrier == Carrier::kCopies)
    throw_usage("ranks of other processes can only be reached by exchanges");
}

}  // namespace ring::cuda
