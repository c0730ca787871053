// The processes of mpirun or srun, over MPI.
// The C interface is enough; the old C++ one warns.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstring>
#include <string>

#include "core/error.h"
#include "kernels/job.h"
#include "kernels/launcher.h"

namespace ring {
namespace {

void check(int result, const char* what) {
  if (result != MPI_SUCCESS)
    throw Error(ErrorKind::kRunFailed, std::string("MPI: ") + what + " failed");
}

class MpiJob final : public Job {
 public:
  MpiJob() {
    check(MPI_Init(nullptr, nullptr), "MPI_Init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    MPI_Comm host = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host),
          "MPI_Comm_split_type");
    check(MPI_Comm_rank(host, &local_rank_), "MPI_Comm_rank");
    MPI_Comm_free(&host);
  }
  ~MpiJob() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }

  void broadcast(std::span<std::byte> bytes) override {
    check(MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, MPI_COMM_WORLD),
          "MPI_Bcast");
  }

  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes) override {
    int own = static_cast<int>(bytes.size());
    const auto count = static_cast<size_t>(rank_ == 0 ? size_ : 0);
    std::vector<int> sizes(count), places(count);
    check(MPI_Gather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, MPI_COMM_WORLD), "MPI_Gather");
    int total = 0;
    for (size_t i = 0; i < count; ++i) {
      places[i] = total;
      total += sizes[i];
    }
    std::vector<std::byte> all(static_cast<size_t>(total));
    check(MPI_Gatherv(bytes.data(), own, MPI_BYTE, all.data(), sizes.data(), places.data(),
                      MPI_BYTE, 0, MPI_COMM_WORLD),
          "MPI_Gatherv");
    std::vector<std::vector<std::byte>> parts;
    for (size_t i = 0; i < count; ++i)
      parts.emplace_back(all.begin() + places[i], all.begin() + places[i] + sizes[i]);
    return parts;
  }

  void barrier() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

 private:
  int rank_ = 0, size_ = 1, local_rank_ = 0;
};

}  // namespace

std::unique_ptr<Job> join_launched_job() {
  return launched_processes() > 1 ? std::make_unique<MpiJob>() : nullptr;
}

}  // namespace ring
