#include "experiments/validation/stacks.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"

namespace ring {
namespace {

// Counted in the public code of each, element-wise operations one by one as they are written.
constexpr std::array<Stack, 4> kStacks{{
    {"own", 0, 0, 0, 0, 4, BackwardMoves::kAuto, "this project's kernels continue a state"},
    {"ring-flash-attention", 38, 6, 8, 10, 4, BackwardMoves::kKeys,
     "fp32 out and lse updated after every step: cast 6 B, difference 12, product 8, difference "
     "12; gradients added in fp32: 10 for dQ"},
    {"transformer-engine", 22, 5, 8, 8, 2, BackwardMoves::kKeys,
     "outputs of all steps kept and corrected at the end: exp of fp64 lse times output 10 B, added "
     "into the 16-bit output 12 B; gradients travel in the model dtype"},
    {"burst", 34, 6, 8, 12, 2, BackwardMoves::kQueries,
     "fp32 accumulator rescaled and added after every step; the query side travels backward, dK "
     "and "
     "dV are added in 16 bits: 6 each"},
}};

}  // namespace

const Stack& find_stack(std::string_view name) {
  for (const Stack& stack : kStacks) {
    if (stack.name == name) return stack;
  }
  throw_usage(fmt::format("no software stack '{}'", name));
}

void apply_stack(const Stack& stack, int ring, Machine& machine) {
  constexpr double kFree = 1e18;
  machine.delta_bytes_per_s = kFree;
  const double byte_s = machine.merge_bytes_per_s > 0 ? 1 / machine.merge_bytes_per_s : 0;
  for (auto& [dtype, cost] : machine.attend) {
    cost.merge_launch_s = stack.merge_launches * kShortLaunchSeconds;
    cost.per_merge_row_dim_s = stack.merge_bytes * byte_s;
  }
  if (ring == 1 || stack.kept_gradient_bytes == 0) return;
  for (auto& [dtype, cost] : machine.backward) {
    for (TileKernel& kernel : cost.tiles) {
      kernel.launch_s += 2 * kShortLaunchSeconds;
      kernel.per_row_dim_s += stack.kept_gradient_bytes * byte_s;
    }
  }
}

}  // namespace ring
