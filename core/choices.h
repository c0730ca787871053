// Choices: the forms that masks, partitions and strategies can take, for lists to choose from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"

namespace ring {

/// One form of a text such as "window:4096": what stands before the colon and what behind it.
struct ChoiceForm {
  std::string kind;       ///< "window".
  std::string parameter;  ///< What stands behind the colon: "tokens"; empty: nothing may.
  std::string summary;    ///< One sentence.
  std::string example;    ///< A whole text that is valid for the sizes asked for: "window:4096".
};

/// What Mask::parse reads for sequences of `seq_len` tokens.
std::vector<ChoiceForm> mask_forms(int64_t seq_len);
/// What make_partition reads for `seq_len` tokens over `ranks` ranks.
std::vector<ChoiceForm> partition_forms(int64_t seq_len, int ranks);
/// The strategies that can run on `ranks` ranks; the example has a parameter that fits where it
/// must.
std::vector<ChoiceForm> strategy_forms(int ranks);

/// Every data type and every pass that a problem can have.
std::span<const DType> all_dtypes();
std::span<const Pass> all_passes();

/// "window:4096" -> "window".
std::string_view kind_of(std::string_view text);
/// "window:4096" -> "4096"; empty without a colon.
std::string_view parameter_of(std::string_view text);

/// The problem over another length. A mask that names positions is stretched to it. Throws
/// Error(kUsage) for a mask that has no text.
Problem with_seq_len(const Problem& problem, int64_t seq_len);

}  // namespace ring
