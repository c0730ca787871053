// MachineFit: fits the parameters of a machine, one kind after another, to the samples of probes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/calibration.h"
#include "core/fit.h"
#include "core/machine.h"
#include "kernels/probe_collector.h"

namespace ring {

/// Cache sizes that are tried.
inline constexpr double kLeastCacheBytes = 256 << 10, kMostCacheBytes = 64 << 20, kCacheStep = 1.5;

inline double robust_deviation(std::vector<double> values) {
  const double middle = median(values);
  for (double& value : values) value = std::fabs(value - middle);
  return 1.4826 * median(values);  // Of a normal distribution, from the median deviation.
}

/// What machines of cores and of GPUs have in common. Every function leaves a parameter alone for
/// which there are too few samples.
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
          std::string("a lane that waits for another, on a ") + processor_);
    }
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
        if (quantity == "bytes" && !message_probes_.contains(sample.sample.probe)) continue;
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

 protected:
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

  /// A factor on times, which is 1 where nothing slows.
  void put_factor(const std::string& key, const std::vector<double>& slower,
                  double Machine::*factor, const std::string& source) {
    if (slower.empty()) return;
    machine_.*factor = std::max(median(slower), 1.0);
    put(key,
        {machine_.*factor, std::max(quantile(slower, 0.05), 1.0),
         std::max(quantile(slower, 0.95), 1.0)},
        source);
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
  /// Whose bytes are in the range that the machine is trusted in.
  std::set<std::string> message_probes_ = {"transfer"};
};

}  // namespace ring
