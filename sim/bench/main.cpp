// ring_bench_sim: every figure of the simulator with its target, each checked before it is timed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/formats/bench_rows.h"
#include "core/strategy.h"
#include "sim/bench/measure.h"
#include "sim/reference_scenarios.h"
#include "sim/simulator.h"
#ifdef RING_HAVE_SIMGRID
#include "sim/bench/simgrid/simgrid_ring.h"
#endif

namespace ring {
namespace {

SimulationOptions metrics_only() {
  SimulationOptions options;
  options.keep_timeline = false;
  options.allow_folding = false;
  return options;
}

double simulated_seconds(const RingScenario& scenario) {
  return seconds_from_picoseconds(
      simulate(*ring_scenario(scenario), ring_of_gpus(scenario.ranks), metrics_only()).makespan_ps);
}

std::string name_of(const RingScenario& scenario) { return ring_scenario(scenario)->name(); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Bench {
 public:
  explicit Bench(bool is_quick) : is_quick_(is_quick) {}

  void run();
  const std::vector<BenchRow>& rows() const { return rows_; }

 private:
  void add(BenchRow row) {
    fmt::print("{}", bench_line(row));
    std::fflush(stdout);
    rows_.push_back(std::move(row));
  }
  void at_most(const std::string& name, double value, const std::string& unit, double limit) {
    add(row_at_most(name, value, unit, limit));
  }
  void at_least(const std::string& name, double value, const std::string& unit, double limit) {
    add(row_at_least(name, value, unit, limit));
  }
  void check(const std::string& what, bool is_right) {
    if (is_right) return;
    throw Error(ErrorKind::kWrongResult, what + ": the result is wrong, so it is not timed");
  }

  /// Checks against the exact answer, then gives median time and memory of `repeats` runs.
  Measured time_ring(const RingScenario& scenario, double expected_s, int repeats);
  void rings();
  void attention_ring();
  void cost_per_op();
  void folded();
  void unfolded();
  void beside_simgrid(const RingScenario& scenario, double expected_s, double target);

  bool is_quick_;
  std::vector<BenchRow> rows_;
};

Measured Bench::time_ring(const RingScenario& scenario, double expected_s, int repeats) {
  std::vector<double> seconds;
  Measured measured;
  for (int i = 0; i < repeats; ++i) {
    measured = measure_apart([&] { return simulated_seconds(scenario); });
    check(name_of(scenario),
          measured.has_worked && std::abs(measured.result / expected_s - 1) <= 1e-9);
    seconds.push_back(measured.seconds);
  }
  measured.seconds = median(seconds);
  return measured;
}

void Bench::rings() {
  const RingScenario regular{.ranks = 1024}, irregular{.ranks = 1024, .is_irregular = true};
  const double regular_s = time_ring(regular, 1023 * 5e-3, 3).seconds;
  const double irregular_s = time_ring(irregular, 5.629045596, 3).seconds;
  at_most("RJ(1024, 1)", irregular_s, "s", 0.4);
  at_most("R(1024, 1) to RJ(1024, 1), time per message", irregular_s / regular_s, "ratio", 2);
  const Measured small = time_ring({.ranks = 256, .messages = 16}, 255 * 5e-3, 3);
  at_most("R(256, 16)", small.seconds, "s", 0.2);
  if (is_quick_) return;
  const Measured large = time_ring({.ranks = 1024, .messages = 16}, 1023 * 5e-3, 1);
  at_most("R(1024, 16)", large.seconds, "s", 4);
  at_most("R(1024, 16) memory", large.mebibytes, "MiB", 80);
}

Machine attention_machine(int ranks) {
  Machine machine = ring_of_gpus(ranks, 50e9, 2'000'000);
  machine.attend[DType::kBF16] = {5e-6, 0, 1.0 / 300e12, 0, 0, 0};
  machine.copy = {1e-6, 1e12};
  machine.merge_bytes_per_s = 1e12;
  return machine;
}

Problem attention_problem(Tokens tokens, Mask mask) {
  Problem problem;
  problem.heads = 32;
  problem.kv_heads = 8;
  problem.dtype = DType::kBF16;
  problem.mask = std::move(mask);
  RING_ASSERT(problem.seq_len() == tokens);
  return problem;
}

/// 8 ranks, 1 Mi tokens, blocks of 4096, causal zigzag.
void Bench::attention_ring() {
  constexpr Tokens kTokens = Tokens{1} << 20;
  const Problem problem = attention_problem(kTokens, Mask::causal(kTokens));
  Tuning tuning;
  tuning.ranks = 8;
  tuning.block_tokens = 4096;
  const RingProgram program = plan(problem, tuning);
  const Machine machine = attention_machine(8);
  Flops flops = 0;
  for (const RankProgram& rank : program.rank_programs) {
    for (const Op& op : rank.ops) flops += op.flops;
  }
  std::vector<double> from_program, from_source;
  for (int i = 0; i < 11; ++i) {
    const Measured a = measure_apart([&] {
      return static_cast<double>(simulate(program, machine, metrics_only()).metrics.flops);
    });
    const Measured b = measure_apart([&] {
      return static_cast<double>(
          simulate(*plan_source(problem, tuning), machine, metrics_only()).metrics.flops);
    });
    const auto expected = static_cast<double>(flops);
    check("8 ranks, 1M tokens",
          a.has_worked && b.has_worked && a.result == expected && b.result == expected);
    from_program.push_back(a.seconds * 1e3);
    from_source.push_back(b.seconds * 1e3);
  }
  const std::string what = "8 ranks, 1M tokens, block 4096";
  at_most(what, median(from_program), "ms", 3);
  add({what + ", planning included", median(from_source), "ms", "", true});
  add({what + ", ops", static_cast<double>(program.op_count()), "ops", "", true});
}

void Bench::cost_per_op() {
  std::vector<double> nanoseconds;
  for (const int ranks : {60, 180, 580, is_quick_ ? 1000 : 1826}) {
    const RingScenario scenario{.ranks = ranks, .is_irregular = true};
    const double ops = 3.0 * ranks * (ranks - 1);
    const double expected_s = simulated_seconds(scenario);
    const double seconds = time_ring(scenario, expected_s, ranks > 1000 ? 1 : 5).seconds;
    nanoseconds.push_back(seconds / ops * 1e9);
    add({fmt::format("time per op at {:.1e} ops", ops), nanoseconds.back(), "ns", "", true});
  }
  const auto [least, most] = std::minmax_element(nanoseconds.begin(), nanoseconds.end());
  at_most("time per op, most over least", *most / *least, "ratio", 2);
}

/// 131,072 GPUs, 100 Mi tokens; every rank attends to every shard.
void Bench::folded() {
  constexpr int kRanks = 131072;
  constexpr Tokens kTokens = Tokens{100} << 20;
  const Problem problem = attention_problem(kTokens, Mask::full(kTokens));
  Tuning tuning;
  tuning.ranks = kRanks;
  tuning.partition = "contiguous";
  const Machine machine = attention_machine(kRanks);
  const double expected =
      static_cast<double>(problem.flops(kTokens)) * static_cast<double>(kTokens);
  const Measured measured = measure_apart([&] {
    SimulationOptions options = metrics_only();
    options.allow_folding = true;
    const SimulationResult result = simulate(*plan_source(problem, tuning), machine, options);
    return result.simulated_ranks == 1 ? static_cast<double>(result.metrics.flops) : 0.0;
  });
  check("131,072 GPUs folded", measured.has_worked && measured.result == expected);
  at_most("131,072 GPUs, 100M tokens, folded", measured.seconds, "s", 1);
}

void Bench::unfolded() {
  const RingScenario scenario{.ranks = 4096, .is_irregular = true};
  const Measured measured = measure_apart([&] { return simulated_seconds(scenario); });
  check("RJ(4096, 1)", measured.has_worked && measured.result > 4095 * 5e-3);
  at_most("RJ(4096, 1)", measured.seconds, "s", 30);
  at_most("RJ(4096, 1) memory", measured.mebibytes / 1024, "GiB", 8);
}

void Bench::beside_simgrid([[maybe_unused]] const RingScenario& scenario,
                           [[maybe_unused]] double expected_s, [[maybe_unused]] double target) {
#ifdef RING_HAVE_SIMGRID
  const double before_s = time_ring(scenario, expected_s, 1).seconds;
  const Measured simgrid = measure_apart([&] { return simgrid_ring_seconds(scenario); });
  check("SimGrid " + name_of(scenario),
        simgrid.has_worked && std::abs(simgrid.result / expected_s - 1) <= 1e-6);
  const double after_s = time_ring(scenario, expected_s, 1).seconds;
  const std::string name = name_of(scenario);
  add({"SimGrid " + name, simgrid.seconds, "s", "", true});
  at_least("SimGrid over ours, " + name, simgrid.seconds / (0.5 * (before_s + after_s)), "x",
           target);
#endif
}

void Bench::run() {
  rings();
  attention_ring();
  cost_per_op();
  folded();
  if (!is_quick_) unfolded();
  if (is_quick_) {
    beside_simgrid({.ranks = 256, .is_irregular = true}, 1.40452847, 25);
  } else {
    beside_simgrid({.ranks = 1024, .is_irregular = true}, 5.629045596, 25);
  }
#ifndef RING_HAVE_SIMGRID
  fmt::print(stderr, "SimGrid is not installed: no comparison with it\n");
#endif
}

int run_main(int argc, char** argv) {
  const BenchOptions options = bench_options(argc, argv, "ring_bench_sim");
  Bench bench(options.is_quick);
  bench.run();
  return finish_bench(options, "sim", bench.rows());
}

}  // namespace
}  // namespace ring

int main(int argc, char** argv) {
  try {
    return ring::run_main(argc, argv);
  } catch (const ring::Error& error) {
    fmt::print(stderr, "{}\n{}\n", error.what(), error.hint());
    return ring::exit_code(error.kind());
  }
}
