#include "kernels/cpu/isa.h"

#include <fmt/ranges.h>

#include "core/error.h"
#include "kernels/cpu/targets.h"

#include <hwy/highway.h>

namespace ring::cpu {
namespace {

int64_t find_isa(std::string_view name, int64_t among) {
  for (int64_t bits = among; bits != 0; bits &= bits - 1) {
    const int64_t bit = bits & -bits;
    if (hwy::TargetName(bit) == name) return bit;
  }
  return 0;
}

}  // namespace

std::vector<std::string> runnable_isas() {
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    names.emplace_back(hwy::TargetName(target));
  }
  return names;
}

std::string current_isa() { return runnable_isas().front(); }

void force_isa(std::string_view isa) {
  hwy::SetSupportedTargetsForTest(0);
  if (!isa.empty()) {
    const std::vector<std::string> names = runnable_isas();
    const int64_t target = find_isa(isa, hwy::SupportedTargets() & HWY_TARGETS);
    if (target == 0) {
      throw Error(ErrorKind::kUnavailable, fmt::format("no kernels for '{}' on this CPU", isa),
                  fmt::format("runnable here: {}", fmt::join(names, ", ")));
    }
    hwy::SetSupportedTargetsForTest(target);
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace ring::cpu
