#include "experiments/device_choice.h"

#include <fmt/format.h>

#include "core/error.h"
#include "kernels/cores.h"
#include "kernels/host_facts.h"

namespace ring {

void require_device(const std::string& device) {
  if (device == "cpu") return;
  if (device != "cuda")
    throw_usage(fmt::format("--device {} is unknown", device),
                "cpu or cuda; CUDA_VISIBLE_DEVICES says which GPUs");
  const std::vector<std::string> missing = missing_for_cuda();
  if (missing.empty()) return;
  throw Error(ErrorKind::kUnavailable,
              fmt::format("cannot run on a CUDA device: {}", fmt::join(missing, "; ")),
              "--device cpu runs here");
}

void require_cores(int64_t cores) {
  const int here = Cores().count();
  if (cores <= here) return;
  throw Error(ErrorKind::kUnavailable,
              fmt::format("--cores is {}, but this process may use {}", cores, here),
              "without --cores all of them are used");
}

Machine with_cores(Machine machine, int cores) {
  const auto all = std::ssize(machine.processors);
  if (machine.transfer != TransferKind::kReceiverCopy || cores < 1 || cores >= all) return machine;
  const double share = static_cast<double>(cores - 1) / static_cast<double>(all - 1);
  machine.attend_contention = 1 + (machine.attend_contention - 1) * share;
  machine.processors.resize(static_cast<size_t>(cores));
  return machine;
}

}  // namespace ring
