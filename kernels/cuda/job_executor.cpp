#include "kernels/cuda/job_executor.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "kernels/cuda/shard_data.h"
#include "kernels/recorder.h"

namespace ring::cuda {

JobExecutor::JobExecutor(const RingProgram& program, GpuExecutor& local, Job& job,
                         std::vector<int64_t> positions)
    : program_(program), local_(local), job_(job), positions_(std::move(positions)) {}

const Timeline& JobExecutor::run() {
  job_.barrier();
  const int64_t before_ns = now_ns();
  job_.barrier();
  // Processes leave a barrier at most so far apart as it takes when all are there.
  const double apart_s = seconds_since(before_ns);
  timeline_ = local_.run();
  clock_uncertainty_s_ = apart_s + local_.clock_uncertainty_s();
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

size_t JobExecutor::part_begin(Part part) const {
  const Problem& problem = program_.problem;
  const int64_t of_pass = has_backward(problem.pass) ? 1 : 0;
  const int64_t counts[kParts] = {problem.heads * problem.head_dim_v, problem.heads,
                                  of_pass * problem.heads * problem.head_dim,
                                  of_pass * problem.kv_heads * problem.head_dim,
                                  of_pass * problem.kv_heads * problem.head_dim_v};
  return static_cast<size_t>(std::accumulate(counts, counts + part, int64_t{0}));
}

std::vector<float> JobExecutor::local_row(int64_t batch, int64_t position) const {
  std::vector<float> row(part_begin(kQueries));
  local_.read_output(batch, position, std::span(row).first(part_begin(kLse)),
                     std::span(row).subspan(part_begin(kLse)));
  if (!has_backward(program_.problem.pass)) return row;
  const auto append = [&row](std::span<const float> values) {
    row.insert(row.end(), values.begin(), values.end());
  };
  append(local_.query_gradients(batch, position));
  append(local_.key_gradients(batch, position));
  append(local_.value_gradients(batch, position));
  return row;
}

void JobExecutor::gather_rows() {
  std::vector<int64_t> keys;
  std::vector<float> values;
  for (const int64_t position : positions_) {
    if (local_.storage_bytes(place_of(program_.partition, position).rank) == 0) continue;
    for (int64_t batch = 0; batch < program_.problem.batch; ++batch) {
      const std::vector<float> row = local_row(batch, position);
      keys.insert(keys.end(), {batch, position});
      values.insert(values.end(), row.begin(), row.end());
    }
  }
  keys = gather_values(job_, keys);
  values = gather_values(job_, values);
  const size_t width = part_begin(kParts);
  for (size_t i = 0; i < keys.size() / 2; ++i) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(i * width);
    rows_[{keys[2 * i], keys[2 * i + 1]}].assign(from, from + static_cast<std::ptrdiff_t>(width));
  }
}

std::span<const float> JobExecutor::part_of(int64_t batch, int64_t position, Part part) const {
  const auto row = rows_.find({batch, position});
  if (row == rows_.end())
    throw_usage("token " + std::to_string(position) + " was not among those asked for");
  const size_t begin = part_begin(part);
  return std::span(row->second).subspan(begin, part_begin(static_cast<Part>(part + 1)) - begin);
}

void JobExecutor::read_output(int64_t batch, int64_t position, std::span<float> out,
                              std::span<float> lse) const {
  std::ranges::copy(part_of(batch, position, kOutput), out.begin());
  std::ranges::copy(part_of(batch, position, kLse), lse.begin());
}

std::span<const float> JobExecutor::query_gradients(int64_t batch, int64_t position) const {
  return part_of(batch, position, kQueries);
}
std::span<const float> JobExecutor::key_gradients(int64_t batch, int64_t position) const {
  return part_of(batch, position, kKeys);
}
std::span<const float> JobExecutor::value_gradients(int64_t batch, int64_t position) const {
  return part_of(batch, position, kValues);
}

}  // namespace ring::cuda
