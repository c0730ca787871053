#include "kernels/cpu/isa.h"

#include <fmt/ranges.h>

#include "core/error.h"
#include "kernels/cpu/targets.h"

#include <hwy/highway.h>

namespace ring::cpu {
namespace {

constexpr std::string_view kPairs = "_BF16";

int64_t find_isa(std::string_view name, int64_t among) {
  for (int64_t bits = among; bits != 0; bits &= bits - 1) {
    const int64_t bit = bits & -bits;
    if (hwy::TargetName(bit) == name) return bit;
  }
  return 0;
}

bool is_avx512(int64_t target) {
#if HWY_ARCH_X86
  return (target & (HWY_AVX3 | HWY_AVX3_DL)) != 0;
#else
  (void)target;
  return false;
#endif
}

bool cpu_has_bf16_products() {
#if HWY_ARCH_X86
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

bool has_native_pairs(int64_t target) { return is_avx512(target) && cpu_has_bf16_products(); }

// What force_isa has chosen: nothing, or one ISA with or without bf16 products.
enum class Choice { kNone, kWithPairs, kWithoutPairs };
Choice g_choice = Choice::kNone;

int64_t best_target() { return hwy::SupportedAndGeneratedTargets().front(); }

}  // namespace

bool uses_bf16_products() {
  if (g_choice != Choice::kNone) return g_choice == Choice::kWithPairs;
  static const bool kNative = has_native_pairs(best_target());
  return kNative;
}

std::vector<std::string> runnable_isas() {
  std::vector<std::string> names;
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const std::string name = hwy::TargetName(target);
    const bool pairs =
        g_choice == Choice::kNone ? has_native_pairs(target) : g_choice == Choice::kWithPairs;
    if (pairs) names.push_back(name + std::string(kPairs));
    if (g_choice != Choice::kWithPairs) names.push_back(name);
  }
  return names;
}

std::string current_isa() { return runnable_isas().front(); }

std::vector<std::string> testable_isas() {
  std::vector<std::string> names = runnable_isas();
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (!is_avx512(target)) names.push_back(hwy::TargetName(target) + std::string(kPairs));
  }
  return names;
}

void force_isa(std::string_view isa) {
  hwy::SetSupportedTargetsForTest(0);
  g_choice = Choice::kNone;
  if (!isa.empty()) {
    const std::vector<std::string> names = runnable_isas();
    const bool pairs = isa.ends_with(kPairs);
    const int64_t target = find_isa(pairs ? isa.substr(0, isa.size() - kPairs.size()) : isa,
                                    hwy::SupportedTargets() & HWY_TARGETS);
    if (target == 0 || (pairs && is_avx512(target) && !has_native_pairs(target))) {
      throw Error(ErrorKind::kUnavailable, fmt::format("no kernels for '{}' on this CPU", isa),
                  fmt::format("runnable here: {}", fmt::join(names, ", ")));
    }
    hwy::SetSupportedTargetsForTest(target);
    g_choice = pairs ? Choice::kWithPairs : Choice::kWithoutPairs;
  }
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace ring::cpu
