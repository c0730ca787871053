#include "kernels/bench/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/bench/peaks.h"
#include "kernels/bench/peers.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/vector_math.h"

namespace ring::bench {
namespace {

cpu::AttendShape square(int64_t rows, int dim, DType dtype = DType::kF32, int heads = 1,
                        int kv_heads = 1) {
  return {rows, rows, heads, kv_heads,
          dim,  dim,  dtype, static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)))};
}

std::vector<double> inverse(std::vector<double> seconds) {
  for (double& s : seconds) s = 1.0 / s;
  return seconds;
}

struct AlignedFree {
  void operator()(float* p) const { std::free(p); }
};

}  // namespace

Suite::Suite(int rounds, bool quick, std::string only, std::function<void(const std::string&)> say)
    : timer_(rounds),
      quick_(quick),
      only_(std::move(only)),
      say_(std::move(say)),
      caches_(cpu::detect_caches()),
      workspace_(caches_) {}

void Suite::add(const std::string& name, const Timing& timing, const Summary& summary,
                double factor, const std::string& unit) {
  figures_.push_back({.name = name,
                      .value = summary.median * factor,
                      .unit = unit,
                      .target = {},
                      .at_least = true,
                      .spread = summary.spread,
                      .fastest = summary.fastest * factor,
                      .samples = summary.samples,
                      .rounds = timing.rounds,
                      .quiet = timing.quiet});
}

void Suite::add(const std::string& name, const Timing& timing, const Summary& summary,
                double factor, const std::string& unit, double target, bool at_least) {
  add(name, timing, summary, factor, unit);
  if (quick_ || target <= 0.0) return;  // the targets are for the full sizes
  figures_.back().target = target;
  figures_.back().at_least = at_least;
}

bool Suite::begin_group(const std::string& group) const {
  if (group.find(only_) == std::string::npos) return false;
  say_(group);
  return true;
}

Suite::Peak Suite::peak(DType dtype) const {
  if (cpu::uses_bf16_products(dtype)) {
    return {{"bf16 products", [this] { run_bf16_products(iterations_); }}, bf16_flops_};
  }
  return {fma(), fma_flops_};
}

double Suite::Targets::of(DType dtype) const {
  if (dtype == DType::kF32) return fp32;
  return cpu::uses_bf16_products(dtype) ? bf16 : 0.0;
}

Contender Suite::forward(Problem& problem) {
  return {problem.name(), [this, &problem] {
            problem.reset();
            cpu::attend(problem.shape, problem.q_view(), problem.k_view(), problem.v_view(),
                        problem.span_data(), problem.state(), workspace_);
          }};
}

void Suite::limits() {
  say_("limits of this machine");
  fma_flops_ = run_fma(iterations_);
  std::vector<float> values(4096, -3.3F);
  std::vector<float> powers(4096);
  const int64_t exp_passes = 500;
  const auto times = timer_.time({fma(), {"exp", [&] {
                                            for (int64_t i = 0; i < exp_passes; ++i) {
                                              cpu::exp2_clamped(values.data(), 4096, powers.data());
                                            }
                                          }}});
  const Summary multiply_adds = summarise(inverse(times.seconds[0]));
  add("limit: fp32 multiply-add", times, multiply_adds, fma_flops_ * 1e-9, "GFLOP/s");
  roofline_.compute = {"multiply-add", multiply_adds.median * fma_flops_ * 1e-9};
  if (cpu::uses_bf16_products()) {
    bf16_flops_ = run_bf16_products(iterations_);
    const auto products = timer_.time({peak(DType::kBF16).loop});
    add("limit: products of bf16 pairs", products, summarise(inverse(products.seconds[0])),
        bf16_flops_ * 1e-9, "GFLOP/s");
  }
  add("limit: exp2 in cache", times, summarise(inverse(times.seconds[1])), 4096e-9 * exp_passes,
      "Gexp/s");

  const struct {
    const char* name;
    int64_t bytes;
  } levels[] = {{"L1", caches_.l1_bytes / 2},
                {"L2", caches_.l2_bytes / 2},
                {"L3", std::max(caches_.l3_bytes / 4, caches_.l2_bytes * 2)},
                {"DRAM", int64_t{quick_ ? 64 : 256} << 20}};
  for (const auto& level : levels) {
    const int64_t bytes = level.bytes / 4096 * 4096;
    const std::unique_ptr<float, AlignedFree> data(
        static_cast<float*>(std::aligned_alloc(4096, static_cast<size_t>(bytes))));
    std::fill_n(data.get(), bytes / 4, 1.0F);
    const int64_t passes = std::max<int64_t>(1, (int64_t{512} << 20) / bytes);
    volatile float sink = 0.0F;
    const auto read =
        timer_.time({{level.name, [&] { sink = run_read(data.get(), bytes, passes); }}});
    (void)sink;
    const Summary rate = summarise(inverse(read.seconds[0]));
    const double factor = static_cast<double>(bytes * passes) * 1e-9;
    add(fmt::format("limit: read {}", level.name), read, rate, factor, "GB/s");
    roofline_.bandwidths.push_back({level.name, rate.median * factor});
  }
}

void Suite::forward_figures(int dim, int64_t rows, bool causal, DType dtype, Targets targets) {
  Problem problem(square(sized(rows), dim, dtype), causal);
  if (!begin_group("forward " + problem.name())) return;
  const Contender kernel = forward(problem);
  const Peak limit = peak(dtype);
  kernel.run();
  expect_forward(problem);
  const auto times = timer_.time({limit.loop, kernel});
  const double flops = problem.forward_flops();
  const Summary rate = summarise(inverse(times.seconds[1]));
  add("forward " + problem.name(), times, rate, flops * 1e-9, "GFLOP/s");
  roofline_.points.push_back(
      {"forward " + problem.name(), flops / problem.bytes(), rate.median * flops * 1e-9});
  const Summary share = summarise_ratio(times.seconds[0], times.seconds[1]);
  const std::string name = fmt::format("forward {}, of peak", problem.name());
  const double factor = 100.0 * flops / limit.flops;
  add(name, times, share, factor, "%", targets.of(dtype));
}

void Suite::peer_figures(bool causal, DType dtype, Targets targets) {
  Problem problem(square(sized(4096), 128, dtype), causal);
  const std::vector<Peer> chains = peers(dtype);
  if (chains.empty() || !begin_group("peers " + problem.name())) return;
  std::vector<float> out(problem.u.size());
  std::vector<Contender> contenders = {forward(problem)};
  for (const Peer& peer : chains) {
    run_peer(peer, problem, out.data());
    expect_rows(problem, out, peer.name);
    contenders.push_back({fmt::format("{} {}x{}", peer.name, peer.q_block, peer.k_block),
                          [&] { run_peer(peer, problem, out.data()); }});
  }
  const auto times = timer_.time(contenders);
  size_t best = 1;
  for (size_t i = 1; i < times.seconds.size(); ++i) {
    const Summary rate = summarise(inverse(times.seconds[i]));
    add(fmt::format("peer {} {}", contenders[i].name, problem.name()), times, rate,
        problem.forward_flops() * 1e-9, "GFLOP/s");
    if (summarise(times.seconds[i]).median < summarise(times.seconds[best]).median) best = i;
  }
  add(fmt::format("forward {} over best peer", problem.name()), times,
      summarise_ratio(times.seconds[best], times.seconds[0]), 1.0, "x", targets.of(dtype));
}

void Suite::backward_figures(bool causal, DType dtype, Targets targets) {
  Problem problem(square(sized(4096), 128, dtype), causal);
  if (!begin_group("backward " + problem.name())) return;
  problem.prepare_backward(workspace_);
  const Contender kernel = {"backward", [&] {
                              cpu::attend_backward(problem.shape, problem.backward_input(),
                                                   problem.span_data(), problem.backward_output(),
                                                   workspace_);
                            }};
  const Peak limit = peak(dtype);
  kernel.run();
  expect_backward(problem);
  const auto times = timer_.time({limit.loop, kernel});
  const double flops = 2.5 * problem.forward_flops();
  const Summary rate = summarise(inverse(times.seconds[1]));
  add("backward " + problem.name(), times, rate, flops * 1e-9, "GFLOP/s");
  roofline_.points.push_back(
      {"backward " + problem.name(), flops / (2.0 * problem.bytes()), rate.median * flops * 1e-9});
  add(fmt::format("backward {}, of peak", problem.name()), times,
      summarise_ratio(times.seconds[0], times.seconds[1]), 100.0 * flops / limit.flops, "%",
      targets.of(dtype));
}

// Eight query heads on one KV head against eight on eight: the shared tiles are packed once.
void Suite::group_figures() {
  Problem shared(square(sized(1024), 128, DType::kF32, 8, 1), true);
  Problem apart(square(sized(1024), 128, DType::kF32, 8, 8), true);
  if (!begin_group("groups " + shared.name())) return;
  const std::vector<Contender> contenders = {fma(), forward(shared), forward(apart)};
  contenders[1].run();
  expect_forward(shared);
  const auto times = timer_.time(contenders);
  for (size_t i = 1; i < 3; ++i) {
    add(fmt::format("forward {}, of peak", contenders[i].name), times,
        summarise_ratio(times.seconds[0], times.seconds[i]),
        100.0 * shared.forward_flops() / fma_flops_, "%");
  }
  add("forward eight query heads on one KV head over on eight", times,
      summarise_ratio(times.seconds[2], times.seconds[1]), 1.0, "x");
}

void Suite::thread_figures(DType dtype, Targets targets) {
  const std::vector<int> cores = cpu::cores_of_machine();
  if (cores.size() < 2) return;
  cpu::ThreadTeam team(2, cores);
  cpu::ParallelKernels kernels(team, caches_);
  QuietProbe both(2, [&team](const std::function<void(int)>& work) { team.run(work); });
  if (dtype == DType::kF32) {
    const auto limit = timer_.time(
        {fma(), {"two", [&] { team.run([this](int) { run_fma(iterations_); }); }}}, both);
    add("limit: fp32 multiply-add, 2 threads over 1", limit,
        summarise_ratio(limit.seconds[0], limit.seconds[1]), 2.0, "x");
  }
  const double target = targets.of(dtype);
  const struct {
    int64_t rows;
    int heads;
    bool causal;
  } cases[] = {{4096, 1, false}, {4096, 1, true}, {2048, 4, false}, {2048, 4, true}};
  for (const auto& c : cases) {
    Problem problem(square(sized(c.rows), 128, dtype, c.heads, c.heads), c.causal);
    if (!begin_group("threads " + problem.name())) continue;
    const Contender forward_two = {"two", [&] {
                                     problem.reset();
                                     kernels.attend(problem.shape, problem.q_view(),
                                                    problem.k_view(), problem.v_view(),
                                                    problem.span_data(), problem.state());
                                   }};
    const auto ahead = timer_.time({forward(problem), forward_two}, both);
    expect_forward(problem);
    problem.prepare_backward(workspace_);
    const Contender backward_one = {"one", [&] {
                                      cpu::attend_backward(problem.shape, problem.backward_input(),
                                                           problem.span_data(),
                                                           problem.backward_output(), workspace_);
                                    }};
    const Contender backward_two = {"two", [&] {
                                      kernels.attend_backward(
                                          problem.shape, problem.backward_input(),
                                          problem.span_data(), problem.backward_output());
                                    }};
    const auto back = timer_.time({backward_one, backward_two}, both);
    add(fmt::format("forward {}, 2 threads over 1", problem.name()), ahead,
        summarise_ratio(ahead.seconds[0], ahead.seconds[1]), 1.0, "x", target);
    add(fmt::format("backward {}, 2 threads over 1", problem.name()), back,
        summarise_ratio(back.seconds[0], back.seconds[1]), 1.0, "x", target);
  }
}

// 1024 query rows against 16384 keys in one call, and as a ring of 16 would.
void Suite::ring_figures() {
  const int64_t block = sized(1024);
  cpu::AttendShape shape = square(block, 128);
  shape.kv_rows = 16 * block;
  Problem problem(shape, false);
  if (!begin_group("continuing over 16 blocks")) return;
  cpu::AttendShape part = shape;
  part.kv_rows = block;
  const auto times =
      timer_.time({forward(problem), {"blocks", [&] {
                                        problem.reset();
                                        for (int64_t i = 0; i < 16; ++i) {
                                          cpu::ConstView k = problem.k_view();
                                          cpu::ConstView v = problem.v_view();
                                          k.data = problem.k.data() + i * block * 128;
                                          v.data = problem.v.data() + i * block * 128;
                                          cpu::attend(part, problem.q_view(), k, v, nullptr,
                                                      problem.state(), workspace_);
                                        }
                                      }}});
  expect_forward(problem);
  Summary ratio = summarise_ratio(times.seconds[1], times.seconds[0]);
  ratio.median -= 1.0;
  ratio.fastest -= 1.0;
  add("continuing over 16 blocks of 1024 keys, added time", times, ratio, 100.0, "%", 3.0, false);
}

// bf16 tensors in products of their own; without them only what widening them costs.
void Suite::bf16_figures() {
  forward_figures(128, 4096, false, DType::kBF16, {.bf16 = 78});
  if (!cpu::uses_bf16_products()) return;
  forward_figures(128, 4096, true, DType::kBF16, {.bf16 = 76});
  forward_figures(64, 4096, false, DType::kBF16, {.bf16 = 73});
  forward_figures(64, 4096, true, DType::kBF16, {.bf16 = 72});
  forward_figures(128, 1024, false, DType::kBF16, {.bf16 = 75});
  forward_figures(128, 1024, true, DType::kBF16, {.bf16 = 65});
  peer_figures(false, DType::kBF16, {.bf16 = 1.10});
  peer_figures(true, DType::kBF16, {.bf16 = 1.12});
  backward_figures(false, DType::kBF16, {.bf16 = 60});
  backward_figures(true, DType::kBF16, {.bf16 = 60});
  thread_figures(DType::kBF16, {.bf16 = 1.9});
}

void Suite::run() {
  limits();
  forward_figures(128, 4096, false, DType::kF32, {.fp32 = 85});
  forward_figures(128, 4096, true, DType::kF32, {.fp32 = 83});
  forward_figures(64, 4096, false, DType::kF32, {.fp32 = 82});
  forward_figures(64, 4096, true, DType::kF32, {.fp32 = 80});
  forward_figures(128, 1024, false, DType::kF32, {.fp32 = 82});
  forward_figures(128, 1024, true, DType::kF32, {.fp32 = 76});
  forward_figures(128, 4096, false, DType::kF16, {});
  bf16_figures();
  peer_figures(false, DType::kF32, {.fp32 = 1.05});
  peer_figures(true, DType::kF32, {.fp32 = 1.10});
  backward_figures(false, DType::kF32, {.fp32 = 70});
  backward_figures(true, DType::kF32, {.fp32 = 70});
  group_figures();
  thread_figures(DType::kF32, {.fp32 = 1.92});
  ring_figures();
  const std::vector<std::string> isas = cpu::runnable_isas();
  if (!isas.front().starts_with("AVX2") &&
      std::find(isas.begin(), isas.end(), "AVX2") != isas.end()) {
    cpu::force_isa("AVX2");
    fma_flops_ = run_fma(iterations_);
    const size_t before = figures_.size();
    forward_figures(128, 4096, false, DType::kF32, {.fp32 = 80});
    if (figures_.size() > before) figures_.back().name += " (AVX2 forced)";
    cpu::force_isa("");
  }
}

}  // namespace ring::bench
