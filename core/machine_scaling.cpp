#include "core/machine_scaling.h"

#include <cmath>

namespace ring {

void scale_bandwidth(Machine& machine, const std::string& link_class, double factor) {
  for (Link& link : machine.topology.mutable_links()) {
    if (link_class.empty() || link.link_class == link_class) link.bytes_per_s *= factor;
  }
}

void scale_latency(Machine& machine, double factor) {
  for (Link& link : machine.topology.mutable_links()) {
    link.latency_ps = std::llround(static_cast<double>(link.latency_ps) * factor);
  }
}

void apply(const ScenarioWhatIf& what_if, Machine& machine) {
  if (machine.transfer == TransferKind::kReceiverCopy) {
    machine.copy.bytes_per_s *= what_if.bandwidth;
    machine.memory_bytes_per_s *= what_if.bandwidth;
    machine.copy.start_s *= what_if.latency;
  } else if (what_if.bandwidth != 1 || what_if.latency != 1) {
    scale_bandwidth(machine, {}, what_if.bandwidth);
    scale_latency(machine, what_if.latency);
  }
  if (what_if.jitter) machine.noise.per_op = *what_if.jitter;
}

}  // namespace ring
