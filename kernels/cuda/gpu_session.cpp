#include "kernels/cuda/gpu_session.h"

#include <fmt/format.h>

#include <numeric>

#include "core/error.h"

namespace ring::cuda {

GpuSession make_gpu_session(const RingProgram& program, const DataSource& data, Carrier carrier) {
  GpuSession session;
  GpuOptions options;
  options.carrier = carrier;
  if (carrier == Carrier::kCopies) {
    session.runtime = make_cuda_runtime();
  } else {
    NcclJob job;
    job.id = make_nccl_id();
    job.ranks = program.ranks();
    job.local_ranks.resize(static_cast<size_t>(program.ranks()));
    std::iota(job.local_ranks.begin(), job.local_ranks.end(), 0);
    job.devices = job.local_ranks;
    const int devices = make_cuda_runtime()->device_count();
    if (devices < program.ranks()) {
      throw Error(ErrorKind::kUnavailable,
                  fmt::format("{} ranks that exchange need a GPU each, and there are {}",
                              program.ranks(), devices),
                  "with copies ranks can share a GPU");
    }
    session.runtime = make_cuda_runtime(job);
    options.devices = job.devices;
  }
  session.executor =
      std::make_unique<GpuExecutor>(program, data, *session.runtime, std::move(options));
  return session;
}

Carrier parse_carrier(std::string_view text) {
  if (text == "copies") return Carrier::kCopies;
  if (text == "exchanges") return Carrier::kExchanges;
  throw_usage(fmt::format("--carrier {} is unknown", text), "copies or exchanges");
}

}  // namespace ring::cuda
