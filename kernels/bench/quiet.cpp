#include "kernels/bench/quiet.h"

#include <algorithm>

#include "kernels/bench/peaks.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/recorder.h"

namespace ring::bench {
namespace {

template <class F>
double seconds_of(F work) {
  const int64_t start_ns = now_ns();
  work();
  return seconds_since(start_ns);
}

double ratio_on_this_core() {
  constexpr int kValues = 2048;
  float in[kValues];
  float out[kValues];
  std::fill_n(in, kValues, -3.3F);
  double multiply_adds = 1.0;
  double powers = 1.0;
  for (int i = 0; i < 3; ++i) {  // an interrupt spoils one of the three at most
    multiply_adds = std::min(multiply_adds, seconds_of([] { run_fma(6000); }));
    powers = std::min(powers, seconds_of([&] {
                        for (int pass = 0; pass < 100; ++pass) cpu::exp2_clamped(in, kValues, out);
                      }));
  }
  return powers / multiply_adds;
}

}  // namespace

QuietProbe::QuietProbe(int cores, OnCores on_cores)
    : ratios_(static_cast<size_t>(cores)), on_cores_(std::move(on_cores)) {}

double QuietProbe::measure() {
  on_cores_([this](int core) { ratios_[static_cast<size_t>(core)] = ratio_on_this_core(); });
  return *std::max_element(ratios_.begin(), ratios_.end());
}

}  // namespace ring::bench
