#include "kernels/machine_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/fit.h"
#include "kernels/cpu/block_args.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/workspace.h"

namespace ring {
namespace {

/// Cache sizes that are tried.
constexpr double kLeastCacheBytes = 256 << 10, kMostCacheBytes = 64 << 20, kCacheStep = 1.5;

static_assert(kBackwardUnitKeys == cpu::kUnitKeys && kBackwardUnitRows == cpu::kUnitRows,
              "the cost of a backward op counts the units of the kernel");

double robust_deviation(std::vector<double> values) {
  const double middle = median(values);
  for (double& value : values) value = std::fabs(value - middle);
  return 1.4826 * median(values);  // Of a normal distribution, from the median deviation.
}

class MachineFit {
 public:
  MachineFit(const std::vector<const ProbeCollector*>& collectors, Machine& machine,
             Calibration& calibration, const char* processor)
      : collectors_(collectors),
        machine_(machine),
        calibration_(calibration),
        processor_(processor) {
    for (const ProbeCollector* collector : collectors) {
      for (const ProbeSample& sample : collector->samples()) {
        if (!sample.sample.seconds.empty()) samples_.push_back(sample);
      }
    }
  }

  /// `pass` is "attend" or "backward".
  void attention(const std::string& pass, DType dtype, std::map<DType, AttendCost>& costs) {
    const std::string label(name(dtype));
    const auto is_of_dtype = [&](const ProbeSample& sample) {
      return sample.sample.probe == pass && sample.sample.labels.at("dtype") == label;
    };
    AttendCost cost;
    // A unit of the backward kernel packs its rows anyway: where they come from makes little
    // difference beside that.
    if (pass == "attend") cost.cache_bytes = cache_bytes_of(is_of_dtype);
    for (ProbeSample& sample : samples_) {
      if (is_of_dtype(sample))
        sample.features = attend_features(*sample.problem, *sample.op, cost.cache_bytes);
    }
    const auto fit = fit_samples(pass + "." + label, is_of_dtype);
    if (!fit) return;
    put(fmt::format("{}.{}.cache_bytes", pass, label),
        {cost.cache_bytes, cost.cache_bytes / kCacheStep, cost.cache_bytes * kCacheStep},
        std::string("attention of one rank on one ") + processor_);
    for (size_t j = 0; j < attend_parameters().size(); ++j) {
      const AttendParameter& parameter = attend_parameters()[j];
      cost.*parameter.member = fit->parameters[j].value;
      put(fmt::format("{}.{}.{}", pass, label, parameter.name), fit->parameters[j],
          std::string("attention of one rank on one ") + processor_);
    }
    costs[dtype] = cost;
  }

  void copy() {
    const auto fit = fit_samples(
        "transfer", [](const ProbeSample& sample) { return sample.sample.probe == "transfer"; });
    if (!fit) return;
    const ByteCostFit cost = byte_cost(*fit);
    machine_.copy = cost.cost;
    put("copy.start_s", cost.start_s,
        std::string("messages from one rank to another, each on a ") + processor_ +
            " or on the same");
    put("copy.bytes_per_s", cost.bytes_per_s,
        std::string("messages from one rank to another, each on a ") + processor_ +
            " or on the same");
  }

  /// Between two devices: every device has a link to a switch, as wide as what was measured.
  void peers(int devices) {
    const auto fit = fit_samples("transfer-peer", [](const ProbeSample& sample) {
      return sample.sample.probe == "transfer-peer";
    });
    if (!fit || devices < 2) return;
    const ByteCostFit cost = byte_cost(*fit);
    put("peer.start_s", cost.start_s, "messages between two devices");
    put("peer.bytes_per_s", cost.bytes_per_s, "messages between two devices");
    const int hub = machine_.topology.add_node({"switch", NodeKind::kSwitch, 0});
    // Half of the start on the way to the switch, half on the way from it.
    const Picoseconds latency_ps = picoseconds_from_seconds(std::max(cost.start_s.value, 0.0) / 2);
    for (const int device : machine_.processors)
      machine_.topology.connect(device, hub, cost.bytes_per_s.value, latency_ps, "peer");
    machine_.transfer = TransferKind::kLinks;
  }

  /// Messages and attention beside each other, against either alone.
  void interference() {
    std::vector<double> slower;
    for (const ProbeSample& sample : samples_) {
      if (sample.sample.probe != "transfer-beside-attention") continue;
      const double alone = machine_.copy.start_s + sample.sample.quantities.at("bytes") /
                                                       std::max(machine_.copy.bytes_per_s, 1.0);
      slower.push_back(median(sample.sample.seconds) / alone);
    }
    if (slower.empty() || machine_.copy.bytes_per_s <= 0) return;
    machine_.transfer_slowdown_by_attend = std::max(median(slower), 1.0);
    put("transfer_slowdown_by_attend",
        {machine_.transfer_slowdown_by_attend, std::max(quantile(slower, 0.05), 1.0),
         std::max(quantile(slower, 0.95), 1.0)},
        "messages of a ring of two that attends, against messages alone");
  }

  /// The rate of merges, finalizes, adds or deltas, which have no start in the model.
  void state_rate(const char* probe, double Machine::*rate, const std::string& key) {
    std::vector<double> rates;
    for (const ProbeSample& sample : samples_) {
      if (sample.sample.probe != probe) continue;
      rates.push_back(sample.sample.quantities.at("bytes") / median(sample.sample.seconds));
    }
    if (rates.empty()) return;
    machine_.*rate = median(rates);
    put(key, {median(rates), quantile(rates, 0.05), quantile(rates, 0.95)},
        std::string("states of one rank on one ") + processor_);
  }

  void wakeup() {
    for (const ProbeSample& sample : samples_) {
      if (sample.sample.probe != "wakeup") continue;
      const std::vector<double>& seconds = sample.sample.seconds;
      machine_.wakeup_s = median(seconds);
      put("wakeup_s", {median(seconds), quantile(seconds, 0.05), quantile(seconds, 0.95)},
          "a sleeping lane on a busy core woken from another core");
    }
  }

  /// All cores that copy at once, against one: what the memory gives in all.
  void memory(int cores) {
    std::vector<double> rates;
    for (const ProbeSample& sample : samples_) {
      if (sample.sample.probe != "transfer-all-cores") continue;
      rates.push_back(2 * sample.sample.quantities.at("bytes") / median(sample.sample.seconds));
    }
    if (rates.empty() || cores < 2 || machine_.copy.bytes_per_s <= 0) return;
    machine_.memory_bytes_per_s = std::max(median(rates), machine_.copy.bytes_per_s);
    put("memory_bytes_per_s", {median(rates), quantile(rates, 0.05), quantile(rates, 0.95)},
        "two messages at a time between two cores");
  }

  /// The same attention on all cores against on one.
  void contention() {
    std::vector<double> ratios;
    for (const ProbeSample& all : samples_) {
      if (all.sample.probe != "attend-all-cores") continue;
      for (const ProbeSample& one : samples_) {
        const bool is_twin = one.sample.probe == "attend" &&
                             one.sample.labels == all.sample.labels &&
                             one.sample.quantities == all.sample.quantities;
        if (is_twin) ratios.push_back(median(all.sample.seconds) / median(one.sample.seconds));
      }
    }
    if (ratios.empty()) return;
    const double factor = std::max(median(ratios), 1.0);
    machine_.attend_contention = factor;
    put("attend_contention",
        {factor, std::min(quantile(ratios, 0.05), factor),
         std::max(quantile(ratios, 0.95), factor)},
        "the same attention on all cores and on one");
  }

  void noise() {
    std::vector<double> ops, runs;
    for (const ProbeCollector* collector : collectors_) {
      const auto& noise = collector->op_noise();
      ops.insert(ops.end(), noise.begin(), noise.end());
      const double middle = median(collector->makespans());
      for (const double seconds : collector->makespans()) {
        if (collector->is_attention()) runs.push_back(std::log(seconds / middle));
      }
    }
    machine_.noise = {robust_deviation(ops), robust_deviation(runs)};
  }

  void trust() {
    for (const ProbeSample& sample : samples_) {
      for (const auto& [quantity, value] : sample.sample.quantities) {
        if (quantity == "bytes" && sample.sample.probe != "transfer") continue;
        const std::string key = quantity == "bytes" ? "message_bytes" : quantity;
        const bool is_range = key == "message_bytes" || key == "block_tokens" ||
                              key == "query_rows" || key == "head_dim" || key == "head_dim_v";
        if (!is_range) continue;
        const auto [it, is_new] = machine_.trusted.try_emplace(key, TrustedRange{value, value});
        it->second.low = std::min(it->second.low, value);
        it->second.high = std::max(it->second.high, value);
      }
    }
  }

  void keep_samples() {
    for (ProbeSample& sample : samples_) calibration_.samples.push_back(std::move(sample.sample));
  }

 private:
  /// The cache that attention finds is a part of the last level, shared with others: the size that
  /// explains the chosen samples best. 0 when there are too few.
  template <class Choose>
  double cache_bytes_of(const Choose& choose) const {
    double best = 0, least = std::numeric_limits<double>::infinity();
    for (double bytes = kLeastCacheBytes; bytes <= kMostCacheBytes; bytes *= kCacheStep) {
      std::vector<FitRow> rows;
      for (const ProbeSample& sample : samples_) {
        if (!choose(sample) || sample.sample.is_held_out) continue;
        rows.push_back(
            {attend_features(*sample.problem, *sample.op, bytes), median(sample.sample.seconds)});
      }
      if (rows.empty() || rows.size() < rows.front().features.size()) return 0;
      const double square = fit_relative(rows, 0).mean_square;
      if (square >= least) continue;
      least = square;
      best = bytes;
    }
    return best;
  }

  /// Fits the chosen samples and writes the fitted time into them.
  template <class Choose>
  std::optional<LinearFit> fit_samples(const std::string& key, const Choose& choose) {
    std::vector<FitRow> fitted, held_out;
    for (const ProbeSample& sample : samples_) {
      if (!choose(sample)) continue;
      auto& rows = sample.sample.is_held_out ? held_out : fitted;
      rows.push_back({sample.features, median(sample.sample.seconds)});
    }
    if (fitted.empty() || fitted.size() < fitted.front().features.size()) return std::nullopt;
    const LinearFit fit = fit_relative(fitted);
    calibration_.fits[key] = judge(fit, fitted, held_out);
    for (ProbeSample& sample : samples_) {
      if (choose(sample)) sample.sample.fitted_s = fit.predict(sample.features);
    }
    return fit;
  }

  void put(const std::string& key, const FittedParameter& parameter, const std::string& source) {
    calibration_.parameters[key] = parameter;
    machine_.provenance[key] = "measured: " + source;
  }

  const std::vector<const ProbeCollector*>& collectors_;
  Machine& machine_;
  Calibration& calibration_;
  const char* processor_;  ///< What a processor of this machine is called.
  std::vector<ProbeSample> samples_;
};

void describe_host(int cores, Machine& machine) {
  machine.name = fmt::format("this machine, {} core{}", cores, cores == 1 ? "" : "s");
  machine.transfer = TransferKind::kReceiverCopy;
  for (int core = 0; core < cores; ++core) {
    machine.processors.push_back(
        machine.topology.add_node({fmt::format("core{}", core), NodeKind::kCore, 0}));
  }
  const cpu::CacheSizes caches = cpu::detect_caches();
  machine.context["isa"] = cpu::current_isa();
  machine.context["cores"] = fmt::format("{}", cores);
  machine.context["l1"] = format_bytes(caches.l1_bytes);
  machine.context["l2"] = format_bytes(caches.l2_bytes);
  machine.context["l3 per core"] = format_bytes(caches.l3_bytes);
}

void describe_gpus(const GpuMachineFacts& facts, Machine& machine) {
  machine.name = fmt::format("{} x {}", facts.devices, facts.name);
  machine.transfer = TransferKind::kReceiverCopy;
  for (int device = 0; device < facts.devices; ++device) {
    machine.processors.push_back(
        machine.topology.add_node({fmt::format("gpu{}", device), NodeKind::kGpu, 0}));
  }
  machine.memory_capacity_bytes = facts.memory_bytes;
  machine.context = facts.context;
}

}  // namespace

void fit_gpu_machine(const std::vector<const ProbeCollector*>& collectors,
                     const GpuMachineFacts& facts, Machine& machine, Calibration& calibration) {
  describe_gpus(facts, machine);
  MachineFit fit(collectors, machine, calibration, "device");
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    fit.attention("attend", dtype, machine.attend);
    fit.attention("backward", dtype, machine.backward);
  }
  fit.copy();
  fit.peers(facts.devices);
  fit.interference();
  fit.state_rate("merge", &Machine::merge_bytes_per_s, "merge_bytes_per_s");
  fit.state_rate("finalize", &Machine::finalize_bytes_per_s, "finalize_bytes_per_s");
  fit.state_rate("add", &Machine::add_bytes_per_s, "add_bytes_per_s");
  fit.state_rate("delta", &Machine::delta_bytes_per_s, "delta_bytes_per_s");
  fit.noise();
  fit.trust();
  fit.keep_samples();
}

void fit_machine(const std::vector<const ProbeCollector*>& collectors, int cores, Machine& machine,
                 Calibration& calibration) {
  describe_host(cores, machine);
  MachineFit fit(collectors, machine, calibration, "core");
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    fit.attention("attend", dtype, machine.attend);
    fit.attention("backward", dtype, machine.backward);
  }
  fit.copy();
  fit.memory(cores);
  fit.state_rate("merge", &Machine::merge_bytes_per_s, "merge_bytes_per_s");
  fit.state_rate("finalize", &Machine::finalize_bytes_per_s, "finalize_bytes_per_s");
  fit.state_rate("add", &Machine::add_bytes_per_s, "add_bytes_per_s");
  fit.state_rate("delta", &Machine::delta_bytes_per_s, "delta_bytes_per_s");
  fit.wakeup();
  fit.contention();
  fit.noise();
  fit.trust();
  fit.keep_samples();
}

}  // namespace ring
