// Stacks: what the software around an attention kernel adds to it, derived from its public code.
#pragma once

#include <string>
#include <string_view>

#include "core/machine.h"
#include "core/tuning.h"

namespace ring {

/// What one implementation of ring attention does besides the kernels.
struct Stack {
  std::string_view name;
  /// Bytes read and written per element of the output to merge the result of one more step.
  double merge_bytes = 0;
  int merge_launches = 0;
  /// Bytes read and written per element before and after an all-to-all to lay tensors out anew.
  double layout_bytes = 0;
  /// Bytes read and written to add up the gradients of a step that stay, per element of Q where dQ
  /// stays, of K where dK and dV do. What travels is added by the program.
  double kept_gradient_bytes = 0;
  Bytes gradient_element_bytes = 4;  ///< Of those that travel.
  BackwardMoves backward = BackwardMoves::kKeys;
  std::string_view source;
};

/// By name; throws Error(kUsage) for an unknown one.
const Stack& find_stack(std::string_view name);

/// One launch of a short kernel when launches follow each other.
inline constexpr double kShortLaunchSeconds = 3e-6;

/// The machine as this stack uses it: passes of its own that merge outputs and add gradients of a
/// step go with the attention of the step; delta is a part of its backward kernel. A ring of one
/// adds nothing up.
void apply_stack(const Stack& stack, int ring, Machine& machine);

}  // namespace ring
