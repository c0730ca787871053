// Faults of gradients, of every ring: F16, F17, F22, F23, F24.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/mask_partition.h"
#include "tests/kernels/backward_fixture.h"

namespace ring {
namespace {

using testing_support::AllGradients;
using testing_support::FunctionData;
using testing_support::oracle_gradients;
using testing_support::relative_rms;
using testing_support::run_gradients;

// Relative RMS error of fp32 gradients (docs/numerics.md).
constexpr double kFp32 = 4e-6;

Problem problem_of(Mask mask, int64_t heads, int64_t kv_heads, int64_t dim) {
  Problem problem;
  problem.heads = heads;
  problem.kv_heads = kv_heads;
  problem.head_dim = problem.head_dim_v = dim;
  problem.mask = std::move(mask);
  problem.pass = Pass::kForwardBackward;
  return problem;
}

std::vector<Tuning> ways(int ranks, const std::string& partition) {
  std::vector<Tuning> all;
  for (const char* strategy : {"pass-kv", "pass-q", "bidirectional-ring", "double-ring:2",
                               "multi-ring", "all-gather-kv"}) {
    for (const BackwardMoves moves : {BackwardMoves::kKeys, BackwardMoves::kQueries}) {
      Tuning tuning;
      tuning.strategy = strategy;
      tuning.ranks = ranks;
      tuning.partition = partition;
      tuning.backward = moves;
      all.push_back(tuning);
    }
  }
  return all;
}

std::string text_of(const Tuning& tuning) {
  return fmt::format("{} {} {} {}", tuning.strategy, name(tuning.backward), tuning.ranks,
                     tuning.partition);
}

void expect_close(const AllGradients& actual, const AllGradients& exact, double tolerance) {
  testing_support::expect_gradients(actual, exact, tolerance, tolerance);
}

// Padded to multiples of 4 the last chunk of the first document, tokens 9 to 11, would be nothing
// but padding.
TEST(Faults, F16GradientsOfShortDocuments) {
  const Problem problem = problem_of(Mask::documents({0, 9, 17, 25, 37, 45, 57}, true), 4, 2, 8);
  const Partition by_document = make_partition("doc-zigzag", problem.mask, 2);
  const auto first_document = [&](int rank) {
    int64_t tokens = 0;
    for (const AffineRange& range : by_document.shard(rank))
      for (int64_t i = 0; i < range.count; ++i) tokens += range.begin + i * range.stride < 9;
    return tokens;
  };
  EXPECT_EQ(first_document(0), 3);
  EXPECT_EQ(first_document(1), 6);
  const SeededData data(16);
  const AllGradients exact = oracle_gradients(problem, data);
  for (const char* partition : {"doc-zigzag", "zigzag", "contiguous"}) {
    for (Tuning tuning : ways(2, partition)) {
      SCOPED_TRACE(text_of(tuning));
      tuning.block_tokens = 5;
      expect_close(run_gradients(problem, tuning, data), exact, kFp32);
    }
  }
}

TEST(Faults, F17GradientsOfFewerTokensThanRanks) {
  const SeededData data(17);
  for (const Mask& mask : {Mask::causal(3), Mask::documents({0, 3, 4, 4, 9}, true)}) {
    const Problem problem = problem_of(mask, 4, 2, 8);
    const AllGradients exact = oracle_gradients(problem, data);
    for (const char* partition : {"doc-zigzag", "contiguous"}) {
      for (const Tuning& tuning : ways(8, partition)) {
        SCOPED_TRACE(text_of(tuning));
        expect_close(run_gradients(problem, tuning, data), exact, kFp32);
      }
    }
  }
}

// Zero scores, dO = 1: of P keys each gets dv = 1, dk = sum of q / P * (v - mean of v), and as all
// K are equal dq = 0.
TEST(Faults, F22GradientsAreOfTheKeysAtHand) {
  for (const int ranks : {2, 4, 8}) {
    Problem problem = problem_of(Mask::full(ranks), 1, 1, 1);
    problem.scale = 1;
    const FunctionData data([](Tensor tensor, int64_t, int64_t position, int64_t) {
      if (tensor == Tensor::kKey) return 0.0F;
      if (tensor == Tensor::kOutputGradient) return 1.0F;
      return static_cast<float>(tensor == Tensor::kQuery ? position + 1 : 2 * position + 1);
    });
    const double queries = ranks * (ranks + 1) / 2.0, mean_value = ranks;
    for (const Tuning& tuning : ways(ranks, "contiguous")) {
      SCOPED_TRACE(text_of(tuning));
      const AllGradients actual = run_gradients(problem, tuning, data);
      for (int i = 0; i < ranks; ++i) {
        const auto at = static_cast<size_t>(i);
        EXPECT_NEAR(actual.dv[at], 1, 1e-6);
        EXPECT_NEAR(actual.dk[at], queries / ranks * (2 * i + 1 - mean_value), 1e-5);
        EXPECT_NEAR(actual.dq[at], 0, 1e-6);
      }
    }
  }
}

/// sum(out * dO) of causal attention in fp64, one softmax over all keys; nothing is shared with the
/// oracle of the gradients.
class Loss {
 public:
  Loss(const Problem& problem, const DataSource& data) : p_(problem) {
    const auto fetch = [&](Tensor tensor, int64_t width) {
      std::vector<double> all;
      std::vector<float> row(static_cast<size_t>(width));
      for (int64_t batch = 0; batch < p_.batch; ++batch) {
        for (int64_t token = 0; token < p_.seq_len(); ++token) {
          data.fill(tensor, batch, token, row);
          all.insert(all.end(), row.begin(), row.end());
        }
      }
      return all;
    };
    q = fetch(Tensor::kQuery, p_.heads * p_.head_dim);
    k = fetch(Tensor::kKey, p_.kv_heads * p_.head_dim);
    v = fetch(Tensor::kValue, p_.kv_heads * p_.head_dim_v);
    d_out_ = fetch(Tensor::kOutputGradient, p_.heads * p_.head_dim_v);
  }

  double value() const {
    double sum = 0;
    for (int64_t batch = 0; batch < p_.batch; ++batch)
      for (int64_t row = 0; row < p_.seq_len(); ++row)
        for (int64_t head = 0; head < p_.heads; ++head) sum += of_row(batch, row, head);
    return sum;
  }

  /// Central differences of two widths; what is left is of fourth order.
  double slope(double& x) const {
    const double kept = x;
    const auto over = [&](double step) {
      x = kept + step;
      const double up = value();
      x = kept - step;
      const double down = value();
      x = kept;
      return (up - down) / (2 * step);
    };
    return (4 * over(0.5e-3) - over(1e-3)) / 3;
  }

  std::vector<double> q, k, v;

 private:
  double of_row(int64_t batch, int64_t row, int64_t head) const {
    const int64_t kv = head * p_.kv_heads / p_.heads, tokens = p_.seq_len();
    const double* const query = &q[index(((batch * tokens + row) * p_.heads + head) * p_.head_dim)];
    const double* const slope =
        &d_out_[index(((batch * tokens + row) * p_.heads + head) * p_.head_dim_v)];
    double weights = 0, weighted = 0;
    for (int64_t key = 0; key <= row; ++key) {
      const int64_t at = (batch * tokens + key) * p_.kv_heads + kv;
      double score = 0, product = 0;
      for (int64_t d = 0; d < p_.head_dim; ++d) score += query[d] * k[index(at * p_.head_dim + d)];
      for (int64_t d = 0; d < p_.head_dim_v; ++d)
        product += slope[d] * v[index(at * p_.head_dim_v + d)];
      const double weight = std::exp(score / std::sqrt(static_cast<double>(p_.head_dim)));
      weights += weight;
      weighted += weight * product;
    }
    return weighted / weights;
  }
  static size_t index(int64_t i) { return static_cast<size_t>(i); }

  const Problem& p_;
  std::vector<double> d_out_;
};

/// Every `step`th gradient.
void expect_slopes(const Loss& loss, std::vector<double>& values, const std::vector<double>& oracle,
                   const std::vector<double>& actual, size_t step) {
  ASSERT_EQ(values.size(), oracle.size());
  ASSERT_EQ(values.size(), actual.size());
  std::vector<double> slopes, exact, ring;
  for (size_t i = 0; i < values.size(); i += step) {
    slopes.push_back(loss.slope(values[i]));
    exact.push_back(oracle[i]);
    ring.push_back(actual[i]);
  }
  EXPECT_LE(relative_rms(exact, slopes), 1e-6);
  EXPECT_LE(relative_rms(ring, slopes), kFp32);
}

// All dimensions differ, and then heads = tokens, where a transposition too many goes unseen by
// its shape. Steps are prime, so that all tokens, heads and dims have their turn.
TEST(Faults, F23GradientsAreFiniteDifferences) {
  Problem all_differ = problem_of(Mask::causal(12), 6, 3, 16);
  all_differ.batch = 2;
  for (const auto& [problem, ranks, step] :
       {std::tuple{all_differ, 3, 31},
        std::tuple{problem_of(Mask::causal(16), 16, 16, 64), 4, 211}}) {
    const SeededData data(23);
    Tuning tuning;
    tuning.ranks = ranks;
    tuning.block_tokens = 3;
    const AllGradients oracle = oracle_gradients(problem, data);
    const AllGradients actual = run_gradients(problem, tuning, data);
    Loss loss(problem, data);
    expect_slopes(loss, loss.q, oracle.dq, actual.dq, static_cast<size_t>(step));
    expect_slopes(loss, loss.k, oracle.dk, actual.dk, static_cast<size_t>(step));
    expect_slopes(loss, loss.v, oracle.dv, actual.dv, static_cast<size_t>(step));
  }
}

// Against one rank, which goes through the code of the ring too, and against the oracle.
TEST(Faults, F24GradientsOfRingsAreThoseOfOneRank) {
  const Problem problem = problem_of(Mask::causal(256), 4, 2, 64);
  const SeededData data(24);
  Tuning one;
  one.ranks = 1;
  const AllGradients alone = run_gradients(problem, one, data);
  expect_close(alone, oracle_gradients(problem, data), kFp32);
  for (const char* partition : {"contiguous", "zigzag"}) {
    for (Tuning tuning : ways(4, partition)) {
      SCOPED_TRACE(text_of(tuning));
      tuning.block_tokens = 64;
      expect_close(run_gradients(problem, tuning, data), alone, 1e-5);
    }
  }
}

}  // namespace
}  // namespace ring
