#include "kernels/cuda/job_executor.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/error.h"
#include "kernels/cuda/shard_data.h"
#include "kernels/recorder.h"

namespace ring::cuda {
namespace {

template <class T>
std::vector<T> gather_values(Job& job, const std::vector<T>& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all;
  for (const std::vector<std::byte>& part : job.gather(std::as_bytes(std::span(own)))) {
    const size_t before = all.size();
    all.resize(before + part.size() / sizeof(T));
    if (!part.empty()) std::memcpy(all.data() + before, part.data(), part.size());
  }
  return all;
}

}  // namespace

JobExecutor::JobExecutor(const RingProgram& program, GpuExecutor& local, Job& job,
                         std::vector<int64_t> positions)
    : program_(program), local_(local), job_(job), positions_(std::move(positions)) {}

const Timeline& JobExecutor::run() {
  job_.barrier();
  const int64_t before_ns = now_ns();
  job_.barrier();
  // Processes leave a barrier at most so far apart as it takes when all are there.
  clock_uncertainty_s_ = seconds_since(before_ns);
  timeline_ = local_.run();
  gather_slices();
  gather_rows();
  return timeline_;
}

void JobExecutor::gather_slices() {
  const std::vector<double> uncertain = gather_values(job_, std::vector{clock_uncertainty_s_});
  std::vector<Slice> slices = gather_values(job_, timeline_.slices);
  if (job_.rank() != 0) return;
  clock_uncertainty_s_ = *std::max_element(uncertain.begin(), uncertain.end());
  timeline_.slices = std::move(slices);
  sort_slices(timeline_);
}

void JobExecutor::gather_rows() {
  const Problem& problem = program_.problem;
  const auto elements = static_cast<size_t>(problem.heads * problem.head_dim_v);
  const auto heads = static_cast<size_t>(problem.heads);
  std::vector<int64_t> keys;
  std::vector<float> values;
  for (const int64_t position : positions_) {
    if (local_.storage_bytes(place_of(program_.partition, position).rank) == 0) continue;
    for (int64_t batch = 0; batch < problem.batch; ++batch) {
      std::vector<float> row(elements + heads);
      local_.read_output(batch, position, std::span(row).first(elements),
                         std::span(row).last(heads));
      keys.insert(keys.end(), {batch, position});
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  keys = gather_values(job_, keys);
  values = gather_values(job_, values);
  const size_t width = elements + heads;
  for (size_t i = 0; i < keys.size() / 2; ++i) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(i * width);
    rows_[{keys[2 * i], keys[2 * i + 1]}].assign(from, from + static_cast<std::ptrdiff_t>(width));
  }
}

void JobExecutor::read_output(int64_t batch, int64_t position, std::span<float> out,
                              std::span<float> lse) const {
  const auto row = rows_.find({batch, position});
  if (row == rows_.end())
    throw_usage("token " + std::to_string(position) + " was not among those asked for");
  std::copy_n(row->second.begin(), out.size(), out.begin());
  std::copy_n(row->second.begin() + static_cast<std::ptrdiff_t>(out.size()), lse.size(),
              lse.begin());
}

}  // namespace ring::cuda
