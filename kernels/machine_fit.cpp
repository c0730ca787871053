#include "kernels/machine_fit.h"

#include "kernels/cpu/block_args.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/workspace.h"
#include "kernels/machine_fitter.h"

namespace ring {
namespace {

static_assert(kBackwardUnitKeys == cpu::kUnitKeys && kBackwardUnitRows == cpu::kUnitRows,
              "the cost of a backward op counts the units of the kernel");

class CoreFit : public MachineFit {
 public:
  using MachineFit::MachineFit;

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

}  // namespace

void fit_machine(const std::vector<const ProbeCollector*>& collectors, int cores, Machine& machine,
                 Calibration& calibration) {
  describe_host(cores, machine);
  CoreFit fit(collectors, machine, calibration, "core");
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
