#include "sim/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "core/error.h"
#include "core/program_check.h"
#include "core/strategy.h"
#include "sim/machine_changes.h"
#include "sim/parallel.h"

namespace ring {
namespace {

constexpr double kStep = 0.1;
constexpr double kVanishedShare = 1e-3;  ///< Of the rank time, for a bandwidth.
constexpr double kHiddenShare = 1e-2;    ///< Likewise, for a block size.

class WhatIfRun {
 public:
  WhatIfRun(const RingProgram& program, const Machine& machine, const WhatIfOptions& options)
      : program_(program), machine_(machine), options_(options) {
    simulation_ = options.simulation;
    simulation_.noise_seed.reset();
    simulation_.keep_timeline = false;
  }

  WhatIf run() {
    result_.baseline_ps = simulate(program_, machine_, simulation_).makespan_ps;
    list_machine_changes();
    list_tuning_changes();
    result_.effects.resize(changes_.size());
    const bool is_whole = parallel_for(changes_.size(), options_.threads, simulation_.stop,
                                       [&](size_t i) { result_.effects[i] = changes_[i](); });
    if (!is_whole) throw Error(ErrorKind::kInterrupted, "stopped");
    std::stable_sort(
        result_.effects.begin(), result_.effects.end(), [](const Effect& a, const Effect& b) {
          return std::pair(!a.can_finish, a.relative) < std::pair(!b.can_finish, b.relative);
        });
    if (program_.op_count() <= options_.most_ops_for_remedies) find_remedies();
    return std::move(result_);
  }

 private:
  Effect effect(std::string parameter, std::string change,
                const std::function<Picoseconds()>& makespan) const {
    Effect effect;
    effect.parameter = std::move(parameter);
    effect.change = std::move(change);
    try {
      effect.makespan_ps = makespan();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInterrupted) throw;
      effect.can_finish = false;
      effect.why_not = error.what();
      return effect;
    }
    if (result_.baseline_ps > 0) {
      effect.relative =
          static_cast<double>(effect.makespan_ps) / static_cast<double>(result_.baseline_ps) - 1;
    }
    return effect;
  }

  void list_machine_changes() {
    for (const MachineParameter& parameter : parameters_of(machine_, program_)) {
      changes_.push_back([this, parameter] {
        return effect(parameter.name, parameter.is_cost ? "-10 %" : "+10 %", [&] {
          Machine changed = machine_;
          parameter.scale(changed, parameter.is_cost ? 1 - kStep : 1 + kStep);
          return simulate(program_, changed, simulation_).makespan_ps;
        });
      });
    }
    const bool has_plain_compute = std::any_of(
        program_.rank_programs.begin(), program_.rank_programs.end(), [](const RankProgram& r) {
          return std::any_of(r.ops.begin(), r.ops.end(),
                             [](const Op& op) { return op.kind == OpKind::kCompute; });
        });
    if (!has_plain_compute) return;
    changes_.push_back([this] {
      return effect("compute speed", "+10 %", [&] {
        const RingProgram changed = with_compute_scaled(program_, 1 / (1 + kStep));
        return simulate(changed, machine_, simulation_).makespan_ps;
      });
    });
  }

  void list_tuning_changes() {
    if (!program_.has_attention) return;
    const Tuning& now = program_.tuning;
    for (const Tokens block : {now.block_tokens * 2, now.block_tokens / 2}) {
      if (block < 1 || block > std::max(longest_shard(), now.block_tokens)) continue;
      Tuning tuning = now;
      tuning.block_tokens = block;
      add_tuning("block size", fmt::format("{} -> {}", now.block_tokens, block), tuning);
    }
    for (const int depth : {now.pipeline_depth + 1, now.pipeline_depth - 1}) {
      if (depth < 1 || now.ranks == 1) continue;
      Tuning tuning = now;
      tuning.pipeline_depth = depth;
      add_tuning("depth", fmt::format("{} -> {}", now.pipeline_depth, depth), tuning);
    }
  }

  void add_tuning(std::string parameter, std::string change, const Tuning& tuning) {
    changes_.push_back([this, parameter, change, tuning] {
      return effect(parameter, change,
                    [&] { return simulate(planned(tuning), machine_, simulation_).makespan_ps; });
    });
  }

  /// Throws Error(kUsage) when the program would deadlock.
  RingProgram planned(const Tuning& tuning) const {
    RingProgram program = plan(program_.problem, tuning);
    require_sound(program);
    return program;
  }

  Tokens longest_shard() const { return program_.partition.longest_shard_tokens(); }

  RunAccount account(const RingProgram& program, const Machine& machine) const {
    SimulationOptions kept = simulation_;
    kept.keep_timeline = true;
    const SimulationResult result = simulate(program, machine, kept);
    const RunGraph graph(program, result.timeline);
    return account_run(graph, alone_times(graph, machine));
  }

  static double exposed_share(const RunAccount& account) {
    double exposed = 0;
    for (const HopExposure& hop : account.hops) {
      exposed += static_cast<double>(hop.communication_ps) + static_cast<double>(hop.contention_ps);
    }
    const double all =
        static_cast<double>(account.makespan_ps) * static_cast<double>(account.ranks.size());
    return all > 0 ? exposed / all : 0;
  }

  void find_remedies() {
    const RunAccount now = account(program_, machine_);
    result_.remedies = exposed_by_class(now, program_, machine_);
    const double all = static_cast<double>(now.makespan_ps) * static_cast<double>(now.ranks.size());
    std::erase_if(result_.remedies, [&](const Remedy& remedy) {
      return static_cast<double>(remedy.exposed_ps) <= kVanishedShare * all;
    });
    parallel_for(result_.remedies.size(), options_.threads, simulation_.stop,
                 [&](size_t i) { find_bandwidth(result_.remedies[i]); });
    if (program_.has_attention && exposed_share(now) > kHiddenShare) find_block(now);
    if (simulation_.stop.stop_requested()) throw Error(ErrorKind::kInterrupted, "stopped");
  }

  bool is_hidden_at(const std::string& link_class, double factor) const {
    Machine changed = machine_;
    if (machine_.transfer == TransferKind::kReceiverCopy) {
      changed.copy.bytes_per_s *= factor;
      changed.memory_bytes_per_s *= factor;
    } else {
      scale_bandwidth(changed, link_class, factor);
    }
    const RunAccount then = account(program_, changed);
    const double all =
        static_cast<double>(then.makespan_ps) * static_cast<double>(then.ranks.size());
    // By the classes as they were: a link that is faster now may no longer be the narrowest.
    for (const Remedy& remedy : exposed_by_class(then, program_, machine_)) {
      if (remedy.link_class == link_class &&
          static_cast<double>(remedy.exposed_ps) > kVanishedShare * all) {
        return false;
      }
    }
    return true;
  }

  /// Bisects the logarithm of the factor to within one per cent.
  void find_bandwidth(Remedy& remedy) const {
    if (!is_hidden_at(remedy.link_class, kMostSpeedup)) return;
    double low = 0, high = std::log(kMostSpeedup);
    while (high - low > 0.01) {
      const double middle = (low + high) / 2;
      (is_hidden_at(remedy.link_class, std::exp(middle)) ? high : low) = middle;
    }
    remedy.vanishes_at_bytes_per_s = remedy.bytes_per_s * std::exp(high);
  }

  void find_block(const RunAccount& now) {
    BlockRemedy block;
    block.block_tokens = block.best_tokens = program_.tuning.block_tokens;
    block.exposed_share = exposed_share(now);
    double best_distance = 1e300;
    for (Tokens tokens = 16; tokens <= longest_shard(); tokens *= 2) {
      if (tokens == block.block_tokens || simulation_.stop.stop_requested()) continue;
      Tuning tuning = program_.tuning;
      tuning.block_tokens = tokens;
      const RingProgram program = planned(tuning);
      if (program.op_count() > options_.most_ops_for_remedies) continue;
      const RunAccount then = account(program, machine_);
      const double relative =
          static_cast<double>(then.makespan_ps) / static_cast<double>(now.makespan_ps) - 1;
      if (relative < block.best_relative) {
        block.best_relative = relative;
        block.best_tokens = tokens;
      }
      const double distance =
          std::abs(std::log(static_cast<double>(tokens) / static_cast<double>(block.block_tokens)));
      if (exposed_share(then) > kHiddenShare || distance >= best_distance) continue;
      best_distance = distance;
      block.vanishes_at_tokens = tokens;
    }
    result_.block = block;
  }

  const RingProgram& program_;
  const Machine& machine_;
  const WhatIfOptions& options_;
  SimulationOptions simulation_;
  std::vector<std::function<Effect()>> changes_;
  WhatIf result_;
};

}  // namespace

std::optional<NarrowestLink> narrowest_link(const Machine& machine, int from, int to) {
  if (machine.transfer != TransferKind::kLinks) {
    return NarrowestLink{"copy", machine.copy.bytes_per_s};
  }
  const int source = processor_of(machine, from), target = processor_of(machine, to);
  if (source == target || !machine.topology.has_route(source, target)) return std::nullopt;
  const Route route = machine.topology.route(source, target);
  NarrowestLink narrowest{{}, route.bytes_per_s};
  for (const int number : route.links) {
    const Link& link = machine.topology.links()[static_cast<size_t>(number)];
    if (link.bytes_per_s == route.bytes_per_s) narrowest.link_class = link.link_class;
  }
  return narrowest;
}

std::vector<Remedy> exposed_by_class(const RunAccount& account, const RingProgram& program,
                                     const Machine& machine) {
  std::map<std::string, Remedy> classes;
  for (const HopExposure& hop : account.hops) {
    if (hop.from < 0 || hop.from >= program.ranks()) continue;
    const std::optional<NarrowestLink> link = narrowest_link(machine, hop.from, hop.to);
    if (!link) continue;
    Remedy& remedy = classes[link->link_class];
    remedy.link_class = link->link_class;
    remedy.exposed_ps += hop.communication_ps + hop.contention_ps;
    remedy.bytes_per_s = remedy.bytes_per_s == 0 ? link->bytes_per_s
                                                 : std::min(remedy.bytes_per_s, link->bytes_per_s);
  }
  std::vector<Remedy> list;
  for (const auto& [name, remedy] : classes) {
    if (remedy.exposed_ps > 0) list.push_back(remedy);
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const Remedy& a, const Remedy& b) { return a.exposed_ps > b.exposed_ps; });
  return list;
}

WhatIf what_if(const RingProgram& program, const Machine& machine, const WhatIfOptions& options) {
  return WhatIfRun(program, machine, options).run();
}

}  // namespace ring
