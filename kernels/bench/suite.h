// The figures of ring_bench_kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

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
  Contender fma() const;
  Contender forward(Problem& problem);
  void limits();
  void forward_figures(int dim, int64_t rows, bool causal, DType dtype, double target);
  void peer_figures(bool causal, double target);
  void backward_figures(bool causal, double target);
  void group_figures();
  void thread_figures();
  void ring_figures();
  int64_t sized(int64_t rows) const { return quick_ ? rows / 4 : rows; }

  Timer timer_;
  bool quick_;
  std::string only_;
  std::function<void(const std::string&)> say_;
  cpu::CacheSizes caches_;
  cpu::Workspace workspace_;
  int64_t fma_iterations_ = 0;
  double fma_flops_ = 0.0;
  std::vector<Figure> figures_;
  Roofline roofline_;
};

}  // namespace ring::bench
