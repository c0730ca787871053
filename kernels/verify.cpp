#include "kernels/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "kernels/reference/attention.h"

namespace ring {

namespace {

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4e-6;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF16:
      return 0x1p-11;
  }
  return 0;
}

/// Elements of a (token, head, dim) tensor as the executor stores them.
struct StoredTensor {
  std::vector<std::byte> bytes;
  reference::Tensor view;
};

StoredTensor stored(const DataSource& data, Tensor tensor, const std::vector<int64_t>& positions,
                    int64_t heads, int64_t dim, DType dtype) {
  const int64_t row_elements = heads * dim;
  const auto row_bytes = static_cast<size_t>(row_elements * size_bytes(dtype));
  StoredTensor result;
  result.bytes.resize(positions.size() * row_bytes);
  std::vector<float> values(static_cast<size_t>(row_elements));
  for (size_t i = 0; i < positions.size(); ++i) {
    data.fill(tensor, 0, positions[i], values);
    store_elements(dtype, values, result.bytes.data() + i * row_bytes);
  }
  result.view = {result.bytes.data(), dtype, row_elements, dim};
  return result;
}

reference::Output oracle_rows(const Problem& problem, const DataSource& data,
                              const std::vector<int64_t>& positions) {
  std::vector<int64_t> keys(static_cast<size_t>(problem.seq_len()));
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i);
  const StoredTensor q =
      stored(data, Tensor::kQuery, positions, problem.heads, problem.head_dim, problem.dtype);
  const StoredTensor k =
      stored(data, Tensor::kKey, keys, problem.kv_heads, problem.head_dim, problem.dtype);
  const StoredTensor v =
      stored(data, Tensor::kValue, keys, problem.kv_heads, problem.head_dim_v, problem.dtype);
  std::vector<KeyInterval> intervals;
  for (const int64_t position : positions) intervals.push_back(problem.mask.visible(position));
  reference::Problem oracle;
  oracle.q_rows = static_cast<int64_t>(positions.size());
  oracle.kv_rows = problem.seq_len();
  oracle.heads = static_cast<int>(problem.heads);
  oracle.kv_heads = static_cast<int>(problem.kv_heads);
  oracle.dim_qk = static_cast<int>(problem.head_dim);
  oracle.dim_v = static_cast<int>(problem.head_dim_v);
  oracle.scale = static_cast<double>(problem.softmax_scale());
  oracle.q = q.view;
  oracle.k = k.view;
  oracle.v = v.view;
  oracle.visible = [&intervals](int64_t row, int64_t key) {
    const KeyInterval& seen = intervals[static_cast<size_t>(row)];
    return key >= seen.begin && key < seen.end;
  };
  return reference::attend(oracle);
}

/// |a - b| relative to max(1, |b|); infinite unless both are finite or both the same infinity.
double relative_difference(double a, double b) {
  if (a == b) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
  return std::abs(a - b) / std::max(1.0, std::abs(b));
}

}  // namespace

std::vector<int64_t> sampled_positions(const Partition& partition, int64_t rows) {
  std::set<int64_t> positions;
  for (int rank = 0; rank < partition.ranks(); ++rank) {
    const TokenRanges& shard = partition.shard(rank);
    if (partition.shard_tokens(rank) == 0) continue;
    positions.insert(shard.front().begin);
    positions.insert(shard.back().last());
  }
  const int64_t seq_len = partition.seq_len();
  const int64_t wanted = std::min(seq_len, rows);
  for (int64_t i = 0; i < wanted && static_cast<int64_t>(positions.size()) < wanted; ++i) {
    // Multiples of the golden ratio modulo 1 spread evenly, however many there are.
    const double fraction = std::fmod(static_cast<double>(i + 1) * 0.6180339887498949, 1.0);
    positions.insert(
        std::min(seq_len - 1, static_cast<int64_t>(fraction * static_cast<double>(seq_len))));
  }
  return {positions.begin(), positions.end()};
}

Verification verify_rows(const RingProgram& program, const DataSource& data,
                         const CpuExecutor& executor, int64_t rows) {
  const Problem& problem = program.problem;
  const std::vector<int64_t> positions = sampled_positions(program.partition, rows);
  const reference::Output oracle = oracle_rows(problem, data, positions);
  const auto heads = static_cast<size_t>(problem.heads);
  const auto dim = static_cast<size_t>(problem.head_dim_v);
  std::vector<float> out(heads * dim), lse(heads);
  Verification result;
  result.rows = static_cast<int64_t>(positions.size());
  result.tolerance = tolerance_of(problem.dtype);
  double error_sum = 0, oracle_sum = 0, worst = -1;
  for (size_t row = 0; row < positions.size(); ++row) {
    executor.read_output(0, positions[row], out, lse);
    double row_error = 0;
    for (size_t head = 0; head < heads; ++head) {
      const size_t oracle_row = head * positions.size() + row;
      for (size_t d = 0; d < dim; ++d) {
        const double expected = oracle.out[oracle_row * dim + d];
        const double difference = static_cast<double>(out[head * dim + d]) - expected;
        row_error += difference * difference;
        oracle_sum += expected * expected;
      }
      result.lse_error =
          std::max(result.lse_error,
                   relative_difference(static_cast<double>(lse[head]), oracle.lse[oracle_row]));
    }
    if (!(row_error <= worst)) {
      worst = row_error;
      result.worst_position = positions[row];
    }
    error_sum += row_error;
  }
  const bool is_all_zero = oracle_sum == 0;
  result.error = std::sqrt(is_all_zero ? error_sum : error_sum / oracle_sum);
  if (std::isnan(result.error)) result.error = std::numeric_limits<double>::infinity();
  return result;
}

std::string Verification::text() const {
  if (is_right()) {
    return fmt::format("{} rows agree with the oracle, error {:.1e} (allowed {:.1e})", rows, error,
                       tolerance);
  }
  return fmt::format(
      "WRONG: of {} rows that were checked, position {} differs most; error {:.1e}, lse error "
      "{:.1e} (allowed {:.1e})",
      rows, worst_position, error, lse_error, tolerance);
}

}  // namespace ring
