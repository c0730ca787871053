// The one table of numbers that the window can change: what each is called, where it stands in a
// scenario, and which values its slider stops at.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario.h"

namespace ring::gui {

enum class ParameterGroup { kProblem, kMachine, kTuning, kWhatIf };
std::string_view title(ParameterGroup group);

struct NumberParameter {
  std::string_view id;     ///< "block".
  std::string_view label;  ///< "Block size".
  std::string_view unit;   ///< Behind the number: "tokens"; "x" for a factor, "%" for a share.
  std::string_view help;   ///< One sentence for the tool tip.
  ParameterGroup group = ParameterGroup::kProblem;
  double (*get)(const Scenario&) = nullptr;
  void (*set)(Scenario&, double) = nullptr;
  /// Ascending; what the slider can be set to. The number box takes values between and beyond.
  std::vector<double> (*stops)(const Scenario&) = nullptr;
  /// How a value is read and written, without the unit. Throws Error(kUsage).
  double (*parse)(std::string_view text) = nullptr;
  std::string (*format)(double value) = nullptr;
  std::string_view zero = {};  ///< What the value 0 is called instead: "whole shard".
  bool has_slider = true;      ///< False for what is set once rather than tried out.
};

std::span<const NumberParameter> number_parameters();
/// The parameter must exist.
const NumberParameter& number_parameter(std::string_view id);

}  // namespace ring::gui
