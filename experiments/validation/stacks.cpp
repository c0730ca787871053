#include "experiments/validation/stacks.h"

#include <fmt/format.h>

#include <array>

#include "core/error.h"

namespace ring {
namespace {

/// One launch of a short kernel when launches follow each other.
constexpr double kShortLaunch = 3e-6;

// Counted in the public code of each, element-wise operations one by one as they are written.
constexpr std::array<Stack, 4> kStacks{{
    {"own", 0, 0, 0, 0, 0, 4, "this project's kernels continue a state"},
    {"ring-flash-attention", 38, 6, 8, 10, 12, 4,
     "fp32 out and lse updated after every step: cast 6 B, difference 12, product 8, difference "
     "12; "
     "gradients added in fp32"},
    {"transformer-engine", 22, 5, 8, 8, 12, 2,
     "outputs of all steps kept and corrected at the end: exp of fp64 lse times output 10 B, added "
     "into the 16-bit output 12 B; gradients travel in the model dtype"},
    {"burst", 34, 6, 8, 10, 0, 2,
     "fp32 accumulator rescaled and added after every step; the query side travels backward"},
}};

}  // namespace

const Stack& find_stack(std::string_view name) {
  for (const Stack& stack : kStacks) {
    if (stack.name == name) return stack;
  }
  throw_usage(fmt::format("no software stack '{}'", name));
}

void apply_stack(const Stack& stack, Machine& machine) {
  for (auto& [dtype, cost] : machine.attend) {
    cost.merge_launch_s = stack.merge_launches * kShortLaunch;
    cost.per_merge_row_dim_s =
        machine.merge_bytes_per_s > 0 ? stack.merge_bytes / machine.merge_bytes_per_s : 0;
  }
}

}  // namespace ring
