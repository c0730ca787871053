// Candidates: several problems and tunings predicted side by side, each with its interval.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/machine.h"
#include "core/problem.h"
#include "core/tuning.h"
#include "sim/replicas.h"
#include "sim/sweep.h"

namespace ring {

struct Candidate {
  std::string series;  ///< Candidates of one series belong on one line.
  double x = 0;        ///< Where on that line: tokens, ranks.
  Problem problem;
  Tuning tuning;
};

/// A candidate that failed keeps its error, in `point`.
struct CandidateResult {
  Candidate candidate;
  SweepPoint point;
  Spread spread;         ///< Of the makespan; no draws when it is not done.
  bool is_exact = true;  ///< False where visible pairs are left out: not the attention asked for.
};

/// What candidates are judged by; less is better, but for the overlap.
enum class CandidateValue { kTime, kExposedShare, kMemory, kOverlap };
inline constexpr CandidateValue kCandidateValues[] = {
    CandidateValue::kTime, CandidateValue::kExposedShare, CandidateValue::kMemory,
    CandidateValue::kOverlap};
std::string_view name(CandidateValue value);
/// Seconds, a share of the makespan, bytes of the fullest rank, or a share of the communication;
/// nothing for a candidate that is not done.
std::optional<double> value_of(const CandidateResult& result, CandidateValue value);
/// "12.3 ms", "4.5 %", "1.20 GiB".
std::string value_text(CandidateValue value, double number);
/// The best that is done, exact, and fits; the first of equals.
std::optional<size_t> best_of(const std::vector<CandidateResult>& results, CandidateValue value);

struct CandidateOptions {
  int draws = 9;    ///< 1: no interval.
  int threads = 0;  ///< 0: as many as the machine runs at once.
  std::stop_token stop;
  SimulationOptions simulation;
  /// Candidates with more ops fail, saying so, so that a survey stays quick.
  int64_t most_ops = 400'000;
  /// Called from worker threads, one call at a time, as candidates finish.
  std::function<void(size_t index, const CandidateResult&)> on_result;
};

/// One entry per candidate, in their order; the same whatever the number of threads.
std::vector<CandidateResult> evaluate(const std::vector<Candidate>& candidates,
                                      const Machine& machine, const CandidateOptions& options);

/// Every block size with every depth; `x` is the block size, the series the depth. Blocks are
/// powers of two from 128 (or the shard, if that is shorter) to the longest shard.
std::vector<Candidate> block_depth_candidates(const Problem& problem, const Tuning& tuning);
/// The sequence from an eighth to eight times as long, with one series.
std::vector<Candidate> seq_len_candidates(const Problem& problem, const Tuning& tuning);
/// 2, 4, 8 ... ranks up to `most`, the ranks of the tuning among them.
std::vector<Candidate> ring_size_candidates(const Problem& problem, const Tuning& tuning, int most);
/// Every strategy, with a parameter that it can use; one series each.
std::vector<Candidate> strategy_candidates(const Problem& problem, const Tuning& tuning);

/// One line per result: series, x, problem and tuning, times in ps, shares, bytes, error.
std::string candidates_csv(const std::vector<CandidateResult>& results);

}  // namespace ring
