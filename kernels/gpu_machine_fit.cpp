#include "kernels/machine_fit.h"
#include "kernels/machine_fitter.h"

namespace ring {
namespace {

class GpuFit : public MachineFit {
 public:
  using MachineFit::MachineFit;

  /// Between devices, by class of links.
  void links(const GpuMachineFacts& facts) {
    std::map<double, std::string> by_rate;
    for (const auto& [name, pairs] : facts.links) {
      const std::string probe = "transfer-" + name;
      const auto fit = fit_samples(
          probe, [&](const ProbeSample& sample) { return sample.sample.probe == probe; });
      if (!fit) continue;
      const ByteCostFit cost = byte_cost(*fit);
      const std::string source =
          fmt::format("messages between devices {} and {}, by {}", pairs.front().first,
                      pairs.front().second, facts.context.at("carrier"));
      put(name + ".start_s", cost.start_s, source);
      put(name + ".bytes_per_s", cost.bytes_per_s, source);
      by_rate[cost.bytes_per_s.value] = name;
      link_costs_[name] = cost.cost;
      message_probes_.insert(probe);
    }
    if (by_rate.empty()) return;
    const std::string slowest = by_rate.begin()->second;
    for (const auto& [name, cost] : link_costs_) {
      if (name == slowest) {
        connect_by_switch(name, cost);
      } else {
        for (const auto& [from, to] : facts.links.at(name)) connect(from, to, name, cost);
      }
    }
    machine_.transfer = TransferKind::kLinks;
  }

  /// Messages beside attention, against messages alone over the same way.
  void disturbed_messages(const GpuMachineFacts& facts) {
    ByteCost alone = machine_.copy;
    for (const auto& [name, pairs] : facts.links) {
      const bool is_of_probe =
          std::find(pairs.begin(), pairs.end(), std::pair(0, 1)) != pairs.end();
      if (is_of_probe && link_costs_.contains(name)) alone = link_costs_.at(name);
    }
    std::vector<double> slower;
    for (const ProbeSample& sample : samples_) {
      if (sample.sample.probe != "transfer-beside-attention" || alone.bytes_per_s <= 0) continue;
      const double alone_s =
          alone.start_s + sample.sample.quantities.at("bytes") / alone.bytes_per_s;
      slower.push_back(median(sample.sample.seconds) / alone_s);
    }
    put_factor("transfer_slowdown_by_attend", slower, &Machine::transfer_slowdown_by_attend,
               "messages of a ring of two that attends, against messages alone");
  }

  /// Attention beside messages, against the same of two ranks between which nothing travels.
  void disturbed_attention() {
    std::vector<double> slower;
    for (const ProbeSample& disturbed : samples_) {
      if (disturbed.sample.probe != "attend-beside-transfer") continue;
      for (const ProbeSample& alone : samples_) {
        if (alone.sample.probe == "attend-undisturbed" &&
            alone.sample.quantities == disturbed.sample.quantities)
          slower.push_back(median(disturbed.sample.seconds) / median(alone.sample.seconds));
      }
    }
    put_factor("attend_slowdown_by_transfer", slower, &Machine::attend_slowdown_by_transfer,
               "attention of a ring of two while its keys travel, against the same without");
  }

 private:
  void connect(int from, int to, const std::string& name, const ByteCost& cost) {
    machine_.topology.connect(machine_.processors[static_cast<size_t>(from)],
                              machine_.processors[static_cast<size_t>(to)], cost.bytes_per_s,
                              picoseconds_from_seconds(std::max(cost.start_s, 0.0)), name);
  }

  void connect_by_switch(const std::string& name, const ByteCost& cost) {
    const int hub = machine_.topology.add_node({"switch", NodeKind::kSwitch, 0});
    // Half of the start on the way to the switch, half on the way from it.
    const Picoseconds latency_ps = picoseconds_from_seconds(std::max(cost.start_s, 0.0) / 2);
    for (const int device : machine_.processors)
      machine_.topology.connect(device, hub, cost.bytes_per_s, latency_ps, name);
  }

  std::map<std::string, ByteCost> link_costs_;  ///< By class.
};

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
  GpuFit fit(collectors, machine, calibration, "device");
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    fit.attention("attend", dtype, machine.attend);
    fit.attention("backward", dtype, machine.backward);
  }
  fit.copy();
  fit.links(facts);
  fit.disturbed_messages(facts);
  fit.disturbed_attention();
  fit.wakeup();
  fit.state_rate("merge", &Machine::merge_bytes_per_s, "merge_bytes_per_s");
  fit.state_rate("finalize", &Machine::finalize_bytes_per_s, "finalize_bytes_per_s");
  fit.state_rate("add", &Machine::add_bytes_per_s, "add_bytes_per_s");
  fit.state_rate("delta", &Machine::delta_bytes_per_s, "delta_bytes_per_s");
  fit.noise();
  fit.trust();
  fit.keep_samples();
}

}  // namespace ring
