#include "kernels/cuda/gpu_session.h"

#include <fmt/format.h>

#include <numeric>

#include "core/error.h"

namespace ring::cuda {

std::unique_ptr<DeviceRuntime> make_runtime_for(Carrier carrier, int ranks, AttendKernels kernels) {
  if (carrier == Carrier::kCopies) return make_cuda_runtime(std::nullopt, kernels);
  const int devices = make_cuda_runtime()->device_count();
  if (devices < ranks) {
    throw Error(
        ErrorKind::kUnavailable,
        fmt::format("{} ranks that exchange need a GPU each, and there are {}", ranks, devices),
        "with copies ranks can share a GPU");
  }
  NcclJob job;
  job.id = make_nccl_id();
  job.ranks = ranks;
  job.local_ranks.resize(static_cast<size_t>(ranks));
  std::iota(job.local_ranks.begin(), job.local_ranks.end(), 0);
  job.devices = job.local_ranks;
  return make_cuda_runtime(job, kernels);
}

GpuSession make_gpu_session(const RingProgram& program, const DataSource& data, Carrier carrier,
                            AttendKernels kernels) {
  GpuSession session;
  session.runtime = make_runtime_for(carrier, program.ranks(), kernels);
  GpuOptions options;
  options.carrier = carrier;
  if (carrier == Carrier::kExchanges) {
    options.devices.resize(static_cast<size_t>(program.ranks()));
    std::iota(options.devices.begin(), options.devices.end(), 0);
  }
  session.local =
      std::make_unique<GpuExecutor>(program, data, *session.runtime, std::move(options));
  return session;
}

GpuSession make_gpu_session(const RingProgram& program, const DataSource& data, Job& job,
                            std::vector<int64_t> positions, AttendKernels kernels) {
  if (program.ranks() != job.size())
    throw_usage(
        fmt::format("the ring has {} ranks and the job {} processes", program.ranks(), job.size()),
        "launch one process a rank");
  NcclJob nccl;
  nccl.ranks = job.size();
  if (job.rank() == 0) nccl.id = make_nccl_id();
  job.broadcast(std::as_writable_bytes(std::span(nccl.id)));
  nccl.local_ranks = {job.rank()};
  nccl.devices = {job.local_rank() % make_cuda_runtime()->device_count()};
  GpuOptions options;
  options.carrier = Carrier::kExchanges;
  options.devices.assign(static_cast<size_t>(job.size()), -1);
  options.devices[static_cast<size_t>(job.rank())] = nccl.devices.front();
  GpuSession session;
  session.first_device = nccl.devices.front();
  session.runtime = make_cuda_runtime(nccl, kernels);
  session.local =
      std::make_unique<GpuExecutor>(program, data, *session.runtime, std::move(options));
  session.together =
      std::make_unique<JobExecutor>(program, *session.local, job, std::move(positions));
  return session;
}

std::string_view name(AttendKernels kernels) {
  switch (kernels) {
    case AttendKernels::kBest:
      return "best";
    case AttendKernels::kMma:
      return "mma";
    case AttendKernels::kWgmma:
      return "wgmma";
    case AttendKernels::kCudnn:
      return "cudnn";
  }
  return "";
}

AttendKernels parse_attend_kernels(std::string_view text) {
  for (const AttendKernels kernels :
       {AttendKernels::kBest, AttendKernels::kMma, AttendKernels::kWgmma, AttendKernels::kCudnn}) {
    if (text == name(kernels)) return kernels;
  }
  throw_usage(fmt::format("--kernels {} is unknown", text), "best, mma, wgmma or cudnn");
}

std::string_view name(Carrier carrier) {
  return carrier == Carrier::kCopies ? "copies" : "exchanges";
}

Carrier parse_carrier(std::string_view text) {
  if (text == "copies") return Carrier::kCopies;
  if (text == "exchanges") return Carrier::kExchanges;
  throw_usage(fmt::format("--carrier {} is unknown", text), "copies or exchanges");
}

}  // namespace ring::cuda
