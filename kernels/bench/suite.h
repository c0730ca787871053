// The figures of ring_bench_kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/bench/peaks.h"
#include "kernels/bench/problem.h"
#include "kernels/bench/report.h"
#include "kernels/bench/timing.h"
#include "kernels/cpu/parallel.h"

namespace ring::bench {

class Suite {
 public:
  // `rounds` quiet interleaved rounds per figure; sizes divided by 4 where `quick` (figures without
  // a meaning for the targets, for trying the program out). Beside the limits only groups of
  // figures whose name contains `only` are measured; `say` hears the name of each that is.
  Suite(int rounds, bool quick, std::string only, std::function<void(const std::string&)> say);

  void run();

  const std::vector<Figure>& figures() const { return figures_; }
  const Roofline& roofline() const { return roofline_; }

 private:
  void add(const std::string& name, const Timing& timing, const Summary& summary, double factor,
           const std::string& unit);
  void add(const std::string& name, const Timing& timing, const Summary& summary, double factor,
           const std::string& unit, double target, bool at_least = true);
  bool begin_group(const std::string& group) const;  // false when it is not wanted
  Contender fma() const {
    return {"multiply-add", [this] { run_fma(iterations_); }};
  }
  // What limits the products of a dtype: a loop of about 20 ms, and its flops.
  struct Peak {
    Contender loop;
    double flops = 0.0;
  };
  Peak peak(DType dtype) const;
  // Targets in percent or ratios, fp32 and, where its products are made in bf16, bf16; 0: none.
  struct Targets {
    double fp32 = 0.0, bf16 = 0.0;
    double of(DType dtype) const;
  };
  Contender forward(Problem& problem);
  void limits();
  void forward_figures(int dim, int64_t rows, bool causal, DType dtype, Targets targets);
  void peer_figures(bool causal, DType dtype, Targets targets);
  void backward_figures(bool causal, DType dtype, Targets targets);
  void group_figures();
  void thread_figures(DType dtype, Targets targets);
  void bf16_figures();
  void ring_figures();
  int64_t sized(int64_t rows) const { return quick_ ? rows / 4 : rows; }

  Timer timer_;
  bool quick_;
  std::string only_;
  std::function<void(const std::string&)> say_;
  cpu::CacheSizes caches_;
  cpu::Workspace workspace_;
  int64_t iterations_ = 2'500'000;             // of the loop of a peak
  double fma_flops_ = 0.0, bf16_flops_ = 0.0;  // of such a loop
  std::vector<Figure> figures_;
  Roofline roofline_;
};

}  // namespace ring::bench
