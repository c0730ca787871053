#include "kernels/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
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

/// Attention of some rows over all keys, with what it reads.
struct OracleRows {
  StoredTensor q, k, v, d_out;
  std::vector<KeyInterval> intervals;
  reference::Problem problem;
};

std::vector<int64_t> all_positions(const Problem& problem) {
  std::vector<int64_t> positions(static_cast<size_t>(problem.seq_len()));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
  return positions;
}

std::unique_ptr<OracleRows> oracle_rows(const Problem& problem, const DataSource& data,
                                        const std::vector<int64_t>& positions) {
  auto rows = std::make_unique<OracleRows>();
  const std::vector<int64_t> keys = all_positions(problem);
  const auto fetch = [&](Tensor tensor, const std::vector<int64_t>& at, int64_t heads,
                         int64_t dim) {
    return stored(data, tensor, at, heads, dim, problem.dtype);
  };
  rows->q = fetch(Tensor::kQuery, positions, problem.heads, problem.head_dim);
  rows->k = fetch(Tensor::kKey, keys, problem.kv_heads, problem.head_dim);
  rows->v = fetch(Tensor::kValue, keys, problem.kv_heads, problem.head_dim_v);
  if (has_backward(problem.pass))
    rows->d_out = fetch(Tensor::kOutputGradient, positions, problem.heads, problem.head_dim_v);
  for (const int64_t position : positions)
    rows->intervals.push_back(problem.mask.visible(position));
  reference::Problem& oracle = rows->problem;
  oracle.q_rows = static_cast<int64_t>(positions.size());
  oracle.kv_rows = problem.seq_len();
  oracle.heads = static_cast<int>(problem.heads);
  oracle.kv_heads = static_cast<int>(problem.kv_heads);
  oracle.dim_qk = static_cast<int>(problem.head_dim);
  oracle.dim_v = static_cast<int>(problem.head_dim_v);
  oracle.scale = static_cast<double>(problem.softmax_scale());
  oracle.q = rows->q.view;
  oracle.k = rows->k.view;
  oracle.v = rows->v.view;
  oracle.visible = [&intervals = rows->intervals](int64_t row, int64_t key) {
    const KeyInterval& seen = intervals[static_cast<size_t>(row)];
    return key >= seen.begin && key < seen.end;
  };
  return rows;
}

/// RMS of differences relative to the RMS of what is exact; where that is nothing but zeros, such
/// as the gradient of scores that have no choice, the RMS of the differences.
class RelativeError {
 public:
  /// `exact` is (head, token, dim) of `tokens` tokens; `actual` (head, dim) of number `token`,
  /// `scale` times what it should be.
  void add(std::span<const float> actual, const std::vector<double>& exact, size_t token,
           size_t tokens, size_t dim, double scale) {
    for (size_t i = 0; i < actual.size(); ++i) {
      const double wanted = exact[(i / dim * tokens + token) * dim + i % dim];
      const double difference = static_cast<double>(actual[i]) / scale - wanted;
      errors_ += difference * difference;
      values_ += wanted * wanted;
    }
    count_ += static_cast<double>(actual.size());
  }
  double value() const {
    const double error = std::sqrt(errors_ == 0 ? 0 : errors_ / (values_ == 0 ? count_ : values_));
    return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }

 private:
  double errors_ = 0, values_ = 0, count_ = 0;
};

/// lse and sum out * d_out of all rows, (head, row), from the run's own output.
struct RowStatistics {
  std::vector<double> lse, delta;
};

RowStatistics statistics_of(const Problem& problem, const OracleRows& all,
                            const Executor& executor) {
  const auto heads = static_cast<size_t>(problem.heads);
  const auto dim = static_cast<size_t>(problem.head_dim_v);
  const auto rows = static_cast<size_t>(problem.seq_len());
  RowStatistics result{std::vector<double>(heads * rows), std::vector<double>(heads * rows)};
  std::vector<float> out(heads * dim), lse(heads);
  for (size_t row = 0; row < rows; ++row) {
    executor.read_output(0, static_cast<int64_t>(row), out, lse);
    for (size_t head = 0; head < heads; ++head) {
      double& delta = result.delta[head * rows + row];
      for (size_t d = 0; d < dim; ++d) {
        delta += static_cast<double>(out[head * dim + d]) *
                 all.d_out.view.at(static_cast<int64_t>(row), static_cast<int64_t>(head),
                                   static_cast<int64_t>(d));
      }
      result.lse[head * rows + row] = static_cast<double>(lse[head]);
    }
  }
  return result;
}

/// dQ (head, row, dim) of the sampled rows with the delta of the run's own output. An output
/// rounded to 16 bits moves delta, and where a row sees few keys dQ is a small difference of large
/// terms: compared with dQ of the exact output, a right result would seem wrong.
std::vector<double> query_gradients(const OracleRows& sampled,
                                    const std::vector<int64_t>& positions,
                                    const RowStatistics& statistics) {
  const reference::Problem& problem = sampled.problem;
  const auto count = static_cast<int64_t>(positions.size());
  std::vector<int64_t> numbers(positions.size());
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  std::vector<double> dq = reference::query_gradients(problem, sampled.d_out.view, numbers);
  const std::vector<double> out = reference::attend(problem).out;
  reference::Problem over_keys = problem;  // Each row's mean key.
  over_keys.v = problem.k;
  over_keys.dim_v = problem.dim_qk;
  const std::vector<double> keys = reference::attend(over_keys).out;
  const size_t all_rows = statistics.delta.size() / static_cast<size_t>(problem.heads);
  for (int64_t head = 0; head < problem.heads; ++head) {
    for (int64_t i = 0; i < count; ++i) {
      const auto row = static_cast<size_t>(head * count + i);
      double delta = 0;
      for (int64_t d = 0; d < problem.dim_v; ++d) {
        delta += out[row * static_cast<size_t>(problem.dim_v) + static_cast<size_t>(d)] *
                 sampled.d_out.view.at(i, head, d);
      }
      const size_t at = static_cast<size_t>(head) * all_rows +
                        static_cast<size_t>(positions[static_cast<size_t>(i)]);
      const double moved = problem.scale * (delta - statistics.delta[at]);
      const size_t first = row * static_cast<size_t>(problem.dim_qk);
      for (size_t d = first; d < first + static_cast<size_t>(problem.dim_qk); ++d)
        dq[d] += moved * keys[d];
    }
  }
  return dq;
}

void verify_gradients(const RingProgram& program, const DataSource& data, const Executor& executor,
                      const std::vector<int64_t>& positions, const OracleRows& sampled,
                      Verification& result) {
  const Problem& problem = program.problem;
  const auto count = positions.size();
  const double passes = program.tuning.accumulation_steps;
  const auto all = oracle_rows(problem, data, all_positions(problem));
  const RowStatistics statistics = statistics_of(problem, *all, executor);
  const std::vector<double> dq = query_gradients(sampled, positions, statistics);
  const reference::Gradients keys = reference::key_gradients(
      all->problem, all->d_out.view, statistics.lse, statistics.delta, positions);
  const auto dim = static_cast<size_t>(problem.head_dim);
  const auto dim_v = static_cast<size_t>(problem.head_dim_v);
  RelativeError q_error, k_error, v_error;
  for (size_t i = 0; i < count; ++i) {
    q_error.add(executor.query_gradients(0, positions[i]), dq, i, count, dim, passes);
    k_error.add(executor.key_gradients(0, positions[i]), keys.dk, i, count, dim, passes);
    v_error.add(executor.value_gradients(0, positions[i]), keys.dv, i, count, dim_v, passes);
  }
  result.has_gradients = true;
  result.dq_error = q_error.value();
  result.dk_error = k_error.value();
  result.dv_error = v_error.value();
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
                         const Executor& executor, int64_t rows) {
  const Problem& problem = program.problem;
  const std::vector<int64_t> positions = sampled_positions(program.partition, rows);
  const auto sampled = oracle_rows(problem, data, positions);
  const reference::Output oracle = reference::attend(sampled->problem);
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
  if (has_backward(problem.pass))
    verify_gradients(program, data, executor, positions, *sampled, result);
  return result;
}

std::string Verification::text() const {
  const std::string gradients = has_gradients ? fmt::format(", of dQ {:.1e}, dK {:.1e}, dV {:.1e}",
                                                            dq_error, dk_error, dv_error)
                                              : "";
  if (is_right()) {
    return fmt::format("{} rows agree with the oracle, error {:.1e}{} (allowed {:.1e})", rows,
                       error, gradients, tolerance);
  }
  return fmt::format(
      "WRONG: of {} rows that were checked, position {} differs most; error {:.1e}, lse error "
      "{:.1e}{} (allowed {:.1e})",
      rows, worst_position, error, lse_error, gradients, tolerance);
}

}  // namespace ring
