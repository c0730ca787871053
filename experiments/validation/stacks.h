// Stacks: what the software around an attention kernel adds to it, derived from its public code.
#pragma once

#include <string>
#include <string_view>

#include "core/machine.h"

namespace ring {

/// What one implementation of ring attention does besides the kernels.
struct Stack {
  std::string_view name;
  /// Bytes read and written per element of the output to merge the result of one more step.
  double merge_bytes = 0;
  int merge_launches = 0;
  /// Bytes read and written per element before and after an all-to-all to lay tensors out anew.
  double layout_bytes = 0;
  /// Bytes per element of dQ (first) and dK, dV (second) to add up the gradients of a step.
  double query_gradient_bytes = 0, key_gradient_bytes = 0;
  Bytes gradient_element_bytes = 4;  ///< Of dK and dV on the wire.
  std::string_view source;
};

/// By name; throws Error(kUsage) for an unknown one.
const Stack& find_stack(std::string_view name);

/// The machine as this stack uses it: the merge of steps is added to its attend cost.
void apply_stack(const Stack& stack, Machine& machine);

}  // namespace ring
