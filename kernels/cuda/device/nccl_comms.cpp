#include "kernels/cuda/device/nccl_comms.h"

#include <fmt/format.h>

#include <cstring>

#include "core/error.h"
#include "kernels/cuda/device/check.h"
#include "kernels/cuda/device/library.h"

#if __has_include(<nccl.h>)
#include <nccl.h>
#define RING_HAS_NCCL_HEADER
#endif

namespace ring::cuda {

#ifdef RING_HAS_NCCL_HEADER

namespace {

struct Nccl {
  Library library{"libnccl.so.2"};
  decltype(&ncclGetVersion) get_version =
      library.function<decltype(ncclGetVersion)>("ncclGetVersion");
  decltype(&ncclGetUniqueId) get_id =
      library.function<decltype(ncclGetUniqueId)>("ncclGetUniqueId");
  decltype(&ncclCommInitRank) init_rank =
      library.function<decltype(ncclCommInitRank)>("ncclCommInitRank");
  decltype(&ncclCommDestroy) destroy =
      library.function<decltype(ncclCommDestroy)>("ncclCommDestroy");
  decltype(&ncclGroupStart) group_start =
      library.function<decltype(ncclGroupStart)>("ncclGroupStart");
  decltype(&ncclGroupEnd) group_end = library.function<decltype(ncclGroupEnd)>("ncclGroupEnd");
  decltype(&ncclSend) send = library.function<decltype(ncclSend)>("ncclSend");
  decltype(&ncclRecv) receive = library.function<decltype(ncclRecv)>("ncclRecv");
  decltype(&ncclGetErrorString) error_string =
      library.function<decltype(ncclGetErrorString)>("ncclGetErrorString");

  void require() const {
    if (send == nullptr || receive == nullptr || init_rank == nullptr || get_id == nullptr)
      throw Error(ErrorKind::kUnavailable, "NCCL (libnccl.so.2) is not found or too old",
                  "install NCCL 2.18 or later, or run all ranks on one GPU");
  }
  void check(ncclResult_t result, const char* what) const {
    if (result == ncclSuccess) return;
    throw Error(ErrorKind::kRunFailed,
                fmt::format("NCCL: {} failed: {}", what, error_string(result)),
                "NCCL_DEBUG=INFO in the environment makes NCCL say more");
  }
};

}  // namespace

struct NcclComms::Impl {
  Nccl nccl;
  std::map<int, ncclComm_t> comms;  ///< By rank.
};

NcclComms::NcclComms(const NcclJob& job) : impl_(std::make_unique<Impl>()) {
  const Nccl& nccl = impl_->nccl;
  nccl.require();
  ncclUniqueId id;
  static_assert(sizeof id == sizeof(NcclId));
  std::memcpy(&id, job.id.data(), sizeof id);
  nccl.check(nccl.group_start(), "ncclGroupStart");
  for (size_t i = 0; i < job.local_ranks.size(); ++i) {
    RING_CUDA_CHECK(cudaSetDevice(job.devices[i]));
    nccl.check(nccl.init_rank(&impl_->comms[job.local_ranks[i]], job.ranks, id, job.local_ranks[i]),
               "ncclCommInitRank");
  }
  nccl.check(nccl.group_end(), "ncclGroupEnd");
}

NcclComms::~NcclComms() {
  for (const auto& [rank, comm] : impl_->comms) impl_->nccl.destroy(comm);
}

void NcclComms::exchange(std::span<const ExchangePart> parts,
                         std::span<const cudaStream_t> streams) {
  const Nccl& nccl = impl_->nccl;
  nccl.check(nccl.group_start(), "ncclGroupStart");
  for (size_t i = 0; i < parts.size(); ++i) {
    const ExchangePart& part = parts[i];
    const ncclComm_t comm = impl_->comms.at(part.rank);
    const auto count = static_cast<size_t>(part.bytes);
    const ncclResult_t result =
        part.is_send ? nccl.send(part.data, count, ncclInt8, part.peer, comm, streams[i])
                     : nccl.receive(part.data, count, ncclInt8, part.peer, comm, streams[i]);
    nccl.check(result, part.is_send ? "ncclSend" : "ncclRecv");
  }
  nccl.check(nccl.group_end(), "ncclGroupEnd");
}

NcclId nccl_id() {
  const Nccl nccl;
  nccl.require();
  ncclUniqueId id;
  nccl.check(nccl.get_id(&id), "ncclGetUniqueId");
  NcclId bytes;
  std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

std::string nccl_version() {
  const Nccl nccl;
  int version = 0;
  if (nccl.get_version == nullptr || nccl.get_version(&version) != ncclSuccess) return "";
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

#else

struct NcclComms::Impl {};
NcclComms::NcclComms(const NcclJob&) {
  throw Error(ErrorKind::kUnavailable, "ringscope was built without NCCL",
              "build where nccl.h is found, or run all ranks on one GPU");
}
NcclComms::~NcclComms() = default;
void NcclComms::exchange(std::span<const ExchangePart>, std::span<const cudaStream_t>) {}
NcclId nccl_id() { throw Error(ErrorKind::kUnavailable, "ringscope was built without NCCL"); }
std::string nccl_version() { return ""; }

#endif

}  // namespace ring::cuda
