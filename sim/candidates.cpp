#include "sim/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "core/choices.h"
#include "core/error.h"
#include "core/formats/csv_table.h"
#include "core/strategy.h"
#include "sim/parallel.h"
#include "sim/study.h"

namespace ring {

namespace {

constexpr Tokens kLeastBlock = 128;
constexpr int kMostDepth = 8;

CandidateResult evaluate_one(const Candidate& candidate, const Machine& machine,
                             const CandidateOptions& options) {
  CandidateResult result;
  result.candidate = candidate;
  result.point.tuning = candidate.tuning;
  try {
    const auto source = plan_source(candidate.problem, candidate.tuning);
    result.is_exact = !source->skips_pairs();
    const int64_t ops = estimated_ops(*source, options.most_ops);
    if (ops > options.most_ops) {
      throw_usage(fmt::format("more than {} ops", options.most_ops), "left out to stay quick");
    }
    SweepOptions one;
    one.threads = 1;
    one.stop = options.stop;
    one.simulation = options.simulation;
    result.point = sweep(candidate.problem, {candidate.tuning}, machine, one).front();
    if (!result.point.is_done || options.draws <= 1) return result;
    ReplicaOptions replicas;
    replicas.draws = options.draws;
    replicas.simulation = options.simulation;
    replicas.simulation.stop = options.stop;
    result.spread = simulate_spread(plan(candidate.problem, candidate.tuning), machine, replicas);
  } catch (const Error& error) {
    result.point.is_done = false;
    if (error.kind() == ErrorKind::kInterrupted) return result;
    result.point.error = error.what();
    result.point.hint = error.hint();
  }
  return result;
}

}  // namespace

std::string_view name(CandidateValue value) {
  switch (value) {
    case CandidateValue::kTime:
      return "time";
    case CandidateValue::kExposedShare:
      return "exposed communication";
    case CandidateValue::kMemory:
      return "memory of a rank";
    case CandidateValue::kOverlap:
      return "overlap";
  }
  return "";
}

std::optional<double> value_of(const CandidateResult& result, CandidateValue value) {
  const SweepPoint& point = result.point;
  if (!point.is_done) return std::nullopt;
  switch (value) {
    case CandidateValue::kTime:
      return seconds_from_picoseconds(result.spread.draws > 1 ? result.spread.median_ps
                                                              : point.makespan_ps);
    case CandidateValue::kExposedShare:
      return point.makespan_ps > 0 ? static_cast<double>(point.metrics.exposed_ps) /
                                         static_cast<double>(point.makespan_ps)
                                   : 0;
    case CandidateValue::kMemory:
      return static_cast<double>(point.rank_bytes);
    case CandidateValue::kOverlap:
      return point.metrics.overlap;
  }
  return std::nullopt;
}

std::string value_text(CandidateValue value, double number) {
  switch (value) {
    case CandidateValue::kTime:
      return format_time(picoseconds_from_seconds(number));
    case CandidateValue::kMemory:
      return format_bytes(static_cast<Bytes>(number));
    case CandidateValue::kExposedShare:
    case CandidateValue::kOverlap:
      return format_percent(number);
  }
  return {};
}

std::optional<size_t> best_of(const std::vector<CandidateResult>& results, CandidateValue value) {
  const double sign = value == CandidateValue::kOverlap ? -1 : 1;
  std::optional<size_t> best;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto at = value_of(results[i], value);
    if (!at || !results[i].point.fits || !results[i].is_exact) continue;
    if (!best || sign * *at < sign * *value_of(results[*best], value)) best = i;
  }
  return best;
}

std::vector<CandidateResult> evaluate(const std::vector<Candidate>& candidates,
                                      const Machine& machine, const CandidateOptions& options) {
  std::vector<CandidateResult> results(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) results[i].candidate = candidates[i];
  std::mutex mutex;
  parallel_for(candidates.size(), options.threads, options.stop, [&](size_t i) {
    results[i] = evaluate_one(candidates[i], machine, options);
    if (!options.on_result) return;
    const std::lock_guard lock(mutex);
    options.on_result(i, results[i]);
  });
  return results;
}

std::vector<Candidate> block_depth_candidates(const Problem& problem, const Tuning& tuning) {
  const Tokens shard = std::max<Tokens>(1, problem.seq_len() / std::max(1, tuning.ranks));
  std::vector<Candidate> candidates;
  for (int depth = 1; depth <= kMostDepth; ++depth) {
    for (Tokens block = std::min(kLeastBlock, shard); block <= shard; block *= 2) {
      Candidate candidate{fmt::format("depth {}", depth), static_cast<double>(block), problem,
                          tuning};
      candidate.tuning.block_tokens = block;
      candidate.tuning.pipeline_depth = depth;
      candidates.push_back(std::move(candidate));
    }
  }
  return candidates;
}

std::vector<Candidate> seq_len_candidates(const Problem& problem, const Tuning& tuning) {
  std::vector<Candidate> candidates;
  for (int shift = -3; shift <= 3; ++shift) {
    const int64_t seq_len =
        shift < 0 ? problem.seq_len() >> -shift
                  : checked_multiply(problem.seq_len(), int64_t{1} << shift, "sequence length");
    if (seq_len < 1) continue;
    candidates.push_back(
        {"sequence length", static_cast<double>(seq_len), with_seq_len(problem, seq_len), tuning});
  }
  return candidates;
}

std::vector<Candidate> ring_size_candidates(const Problem& problem, const Tuning& tuning,
                                            int most) {
  std::vector<int> sizes{tuning.ranks};
  for (int ranks = 2; ranks <= most; ranks *= 2) sizes.push_back(ranks);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<Candidate> candidates;
  for (const int ranks : sizes) {
    candidates.push_back({"ring size", static_cast<double>(ranks), problem, tuning});
    candidates.back().tuning.ranks = ranks;
  }
  return candidates;
}

std::vector<Candidate> strategy_candidates(const Problem& problem, const Tuning& tuning) {
  std::vector<Candidate> candidates;
  for (const ChoiceForm& form : strategy_forms(tuning.ranks)) {
    Candidate candidate{form.kind, static_cast<double>(candidates.size()), problem, tuning};
    const bool is_current = kind_of(tuning.strategy) == form.kind;
    candidate.tuning.strategy = is_current ? tuning.strategy : form.example;
    candidates.push_back(std::move(candidate));
  }
  return candidates;
}

std::string candidates_csv(const std::vector<CandidateResult>& results) {
  std::string text =
      "series,x,strategy,partition,ranks,seq,block,blocks_per_message,depth,makespan_ps,low_ps,"
      "high_ps,communication_ps,exposed_ps,overlap,imbalance,rank_bytes,fits,error\n";
  for (const CandidateResult& result : results) {
    const Tuning& tuning = result.candidate.tuning;
    text += fmt::format("{},{},{},{},{},{},{},{},{},", csv_cell(result.candidate.series),
                        result.candidate.x, csv_cell(tuning.strategy), csv_cell(tuning.partition),
                        tuning.ranks, result.candidate.problem.seq_len(), tuning.block_tokens,
                        tuning.blocks_per_message, tuning.pipeline_depth);
    const SweepPoint& point = result.point;
    if (point.is_done) {
      const bool has_spread = result.spread.draws > 0;
      text += fmt::format("{},{},{},{},{},{},{},{},{},\n", point.makespan_ps,
                          has_spread ? std::to_string(result.spread.low_ps) : "",
                          has_spread ? std::to_string(result.spread.high_ps) : "",
                          point.metrics.communication_ps, point.metrics.exposed_ps,
                          point.metrics.overlap, point.metrics.imbalance, point.rank_bytes,
                          point.fits ? "yes" : "no");
    } else {
      text += fmt::format(
          ",,,,,,,,,{}\n",
          csv_cell(point.error.empty() ? "not reached"
                                       : point.error.substr(0, point.error.find('\n'))));
    }
  }
  return text;
}

}  // namespace ring
