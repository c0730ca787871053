#include "sim/questions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/machine_scaling.h"
#include "core/strategy.h"
#include "core/wording.h"

namespace ring {

std::string_view text_of(Question question) {
  switch (question) {
    case Question::kHiding:
      return "At which block size does the hop stop hiding?";
    case Question::kLateRank:
      return "Which rank is late, and why?";
    case Question::kDepth:
      return "What does depth buy?";
    case Question::kLink:
      return "What would links twice as fast buy?";
  }
  return "";
}

double exposed_share(const Metrics& metrics) {
  if (metrics.makespan_ps <= 0) return 0;
  return static_cast<double>(metrics.exposed_ps) / static_cast<double>(metrics.makespan_ps);
}

namespace {

constexpr Tokens kSmallestBlock = 128;
constexpr int kDepths[] = {1, 2, 3, 4, 6, 8, 12, 16};
constexpr double kFelt = 1e-3;      ///< Changes of less than this are called nothing.
constexpr double kEven = 0.05;      ///< Imbalance of less than this is called none.
constexpr double kLastPart = 0.01;  ///< The end of a ladder: no step buys more than this.

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

double change(const SweepPoint& from, const SweepPoint& to) {
  if (from.makespan_ps <= 0) return 0;
  return static_cast<double>(to.makespan_ps) / static_cast<double>(from.makespan_ps) - 1;
}

std::string change_text(const SweepPoint& from, const SweepPoint& to) {
  return fmt::format("{} ({})", signed_percent(change(from, to)), format_time(to.makespan_ps));
}

std::string tokens_text(const SweepPoint& point) { return format_count(point.tuning.block_tokens); }

bool hides(const SweepPoint& point) { return exposed_share(point.metrics) <= kHidesBelow; }

/// "9.0 % of the time is communication that nothing covers".
std::string exposed_text(const SweepPoint& point) {
  return fmt::format("{} of the time is exposed", percent(exposed_share(point.metrics)));
}

std::vector<SweepPoint> done_of(const std::vector<SweepPoint>& points) {
  std::vector<SweepPoint> done;
  std::copy_if(points.begin(), points.end(), std::back_inserter(done),
               [](const SweepPoint& point) { return point.is_done; });
  return done;
}

std::vector<SweepPoint> points_of(const Study& study, const std::vector<Tuning>& tunings,
                                  const Machine& machine, const std::stop_token& stop) {
  SweepOptions options;
  options.stop = stop;
  options.simulation = simulation_options(study.plan->scenario);
  options.simulation.noise_seed.reset();
  std::vector<SweepPoint> points = sweep(study.plan->program.problem, tunings, machine, options);
  if (stop.stop_requested()) throw Error(ErrorKind::kInterrupted, "stopped");
  return points;
}

bool is_alike(const Tuning& a, const Tuning& b) {
  return a.block_tokens == b.block_tokens && a.pipeline_depth == b.pipeline_depth;
}

/// Tunings with few enough ops for a survey; that of now always.
bool is_quick(const Study& study, const Tuning& tuning) {
  constexpr int64_t kMostOps = 400'000;
  try {
    return estimated_ops(*plan_source(study.plan->program.problem, tuning), kMostOps) <= kMostOps;
  } catch (const Error&) {
    return false;
  }
}

/// "1Ki, 2Ki".
std::string list_of(const std::vector<SweepPoint>& points, bool hidden) {
  std::vector<std::string> names;
  for (const SweepPoint& point : points) {
    if (hides(point) == hidden) names.push_back(tokens_text(point));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

QuestionFacts question_facts(const Study& study, const std::stop_token& stop) {
  const RingProgram& program = study.plan->program;
  const Tuning& now = program.tuning;
  const Tokens longest = program.partition.longest_shard_tokens();
  std::set<Tokens> blocks{now.block_tokens, longest};
  for (Tokens block = kSmallestBlock; block < longest; block *= 2) blocks.insert(block);
  std::set<int> depths(std::begin(kDepths), std::end(kDepths));
  depths.insert({now.pipeline_depth, now.pipeline_depth + 1});
  std::vector<Tuning> tunings;
  const auto add = [&](const Tuning& tuning) {
    if (is_alike(tuning, now) || is_quick(study, tuning)) tunings.push_back(tuning);
  };
  for (const Tokens block : blocks) {
    Tuning tuning = now;
    tuning.block_tokens = block;
    add(tuning);
  }
  const auto block_count = static_cast<ptrdiff_t>(tunings.size());
  for (const int depth : depths) {
    Tuning tuning = now;
    tuning.pipeline_depth = depth;
    add(tuning);
  }
  QuestionFacts facts;
  const std::vector<SweepPoint> points = points_of(study, tunings, study.plan->machine, stop);
  facts.blocks.assign(points.begin(), points.begin() + block_count);
  facts.depths.assign(points.begin() + block_count, points.end());
  for (const SweepPoint& point : facts.blocks) {
    if (is_alike(point.tuning, now)) facts.now = point;
  }
  Machine twice = study.plan->machine;
  ScenarioWhatIf faster;
  faster.bandwidth = 2;
  apply(faster, twice);
  facts.twice = points_of(study, {now}, twice, stop).front();
  return facts;
}

Answer answer_hiding(const QuestionFacts& facts) {
  Answer answer{Question::kHiding, {}, -1};
  if (facts.now.tuning.ranks == 1) {
    answer.text = "One rank has no hop.";
    return answer;
  }
  const std::vector<SweepPoint> points = done_of(facts.blocks);
  if (points.empty()) {
    answer.text = "No block size that was tried can run.";
    return answer;
  }
  const std::string range =
      fmt::format("from {} to {} tokens", tokens_text(points.front()), tokens_text(points.back()));
  const auto by_share = [](const SweepPoint& a, const SweepPoint& b) {
    return exposed_share(a.metrics) < exposed_share(b.metrics);
  };
  const SweepPoint& least = *std::min_element(points.begin(), points.end(), by_share);
  const SweepPoint& most = *std::max_element(points.begin(), points.end(), by_share);
  const auto hidden = std::count_if(points.begin(), points.end(), hides);
  if (hidden == std::ssize(points)) {
    answer.text =
        fmt::format("At none: it hides with all blocks {} ({}).", range,
                    exposed_share(most.metrics) < kFelt / 2 ? "nothing is exposed"
                                                            : "at most " + exposed_text(most));
    return answer;
  }
  std::string now;
  if (facts.now.is_done) {
    now = fmt::format(" Now, with {}, {}.", tokens_text(facts.now),
                      percent(exposed_share(facts.now.metrics)));
  }
  if (hidden == 0) {
    answer.text = fmt::format("It hides at no block {}; least exposed is {} ({}).{}", range,
                              tokens_text(least), percent(exposed_share(least.metrics)), now);
    return answer;
  }
  // From the smallest block up the hop hides, then it does not, or the other way round.
  const auto turn = std::find_if(points.begin() + 1, points.end(), [&](const SweepPoint& point) {
    return hides(point) != hides(points.front());
  });
  const bool is_one_turn = std::all_of(
      turn, points.end(), [&](const SweepPoint& point) { return hides(point) == hides(*turn); });
  const SweepPoint& before = *std::prev(turn);
  if (!is_one_turn) {
    answer.text = fmt::format("It hides with blocks of {} tokens, not with {}.{}",
                              list_of(points, true), list_of(points, false), now);
  } else if (hides(points.front())) {
    answer.text = fmt::format("Above {} tokens. With {}, {}.{}", tokens_text(before),
                              tokens_text(*turn), exposed_text(*turn), now);
  } else {
    answer.text = fmt::format("Below {} tokens. With {}, {}.{}", tokens_text(*turn),
                              tokens_text(before), exposed_text(before), now);
  }
  return answer;
}

namespace {

struct RankWork {
  double flops = 0, mean_flops = 0;
  double slower = 1;  ///< Time that a FLOP takes, over that on the other ranks.
};

RankWork work_of(const Study& study, int rank) {
  const Timeline& timeline = study.result.timeline;
  RankWork work;
  for (const Slice& slice : timeline.slices) {
    const auto flops = static_cast<double>(slice.flops);
    work.mean_flops += flops / timeline.ranks;
    if (slice.op.rank == rank) work.flops += flops;
  }
  double own_ps = 0, others_ps = 0;
  const auto& ranks = study.result.metrics.ranks;
  for (size_t other = 0; other < ranks.size(); ++other) {
    const auto compute_ps = static_cast<double>(ranks[other].compute_ps);
    (std::cmp_equal(other, rank) ? own_ps : others_ps) += compute_ps;
  }
  const double other_flops = work.mean_flops * timeline.ranks - work.flops;
  if (work.flops > 0 && other_flops > 0 && others_ps > 0) {
    work.slower = own_ps / work.flops * other_flops / others_ps;
  }
  return work;
}

/// Why the rank with the longest computation is behind the others.
std::string reason_of(const Study& study, int rank) {
  const Metrics& metrics = study.result.metrics;
  const auto own = static_cast<double>(metrics.ranks[static_cast<size_t>(rank)].compute_ps);
  const double longer = own / static_cast<double>(std::max<Picoseconds>(1, metrics.compute_ps)) - 1;
  const RankWork work = work_of(study, rank);
  const double more = work.mean_flops > 0 ? work.flops / work.mean_flops - 1 : 0;
  if (more > longer / 2) {
    return fmt::format("It has {:.0f} % more to compute: the {} partition is uneven here",
                       more * 100, study.plan->program.tuning.partition);
  }
  return fmt::format(
      "{} it computes {:.2g} times as slowly",
      more > kEven ? "It has more to compute, and" : "It has no more to compute than the others:",
      work.slower);
}

Answer answer_even_ranks(const Study& study) {
  const Metrics& metrics = study.result.metrics;
  const auto by_exposed = [](const RankMetrics& a, const RankMetrics& b) {
    return a.exposed_ps < b.exposed_ps;
  };
  const auto most = std::max_element(metrics.ranks.begin(), metrics.ranks.end(), by_exposed);
  Answer answer{Question::kLateRank, {}, static_cast<int>(most - metrics.ranks.begin())};
  answer.text = fmt::format("None by its work ({}).", describe_balance(metrics));
  const double share = metrics.makespan_ps > 0 ? static_cast<double>(most->exposed_ps) /
                                                     static_cast<double>(metrics.makespan_ps)
                                               : 0;
  if (share <= kHidesBelow) {
    answer.rank = -1;
    return answer;
  }
  answer.text += fmt::format(" Rank {} has the most exposed messages: {} ({} of the time).",
                             answer.rank, format_time(most->exposed_ps), percent(share));
  return answer;
}

}  // namespace

Answer answer_late_rank(const Study& study) {
  const Metrics& metrics = study.result.metrics;
  if (metrics.ranks.size() < 2) return {Question::kLateRank, "There is one rank.", -1};
  Answer answer;
  if (metrics.imbalance < kEven) {
    answer = answer_even_ranks(study);
  } else {
    answer = {Question::kLateRank, {}, metrics.busiest_rank};
    answer.text =
        fmt::format("Rank {} computes {:.0f} % longer than the mean ({}). {}.", answer.rank,
                    metrics.imbalance * 100,
                    format_time(metrics.ranks[static_cast<size_t>(answer.rank)].compute_ps),
                    reason_of(study, answer.rank));
  }
  for (const ScenarioLateStart& late : study.plan->scenario.late_starts) {
    answer.text += fmt::format(" Rank {} starts {} late.", late.rank, format_time(late.delay_ps));
    answer.rank = late.rank;
  }
  return answer;
}

namespace {

/// What the next depth buys, and what the least depth buys that has nearly all there is.
std::string gain_text(const SweepPoint& now, const std::vector<SweepPoint>& deeper,
                      const SweepPoint& best) {
  const SweepPoint& next = deeper.front();
  const SweepPoint& enough =
      *std::find_if(deeper.begin(), deeper.end(),
                    [&](const SweepPoint& point) { return change(best, point) <= kLastPart; });
  const bool is_next = &enough == &next, is_last = &enough == &deeper.back();
  std::string text;
  if (!is_next) {
    text = fmt::format("Depth {}: {}. ", next.tuning.pipeline_depth, change_text(now, next));
  }
  const Bytes more = std::max<Bytes>(0, enough.rank_bytes - now.rank_bytes);
  return text + fmt::format("Depth {}{}: {}, for {} more a rank{}.", enough.tuning.pipeline_depth,
                            is_last ? ", the deepest tried" : "", change_text(now, enough),
                            format_bytes(more), is_last ? "" : "; deeper buys no more");
}

/// What the depth below that of now would cost.
std::string shallower_text(const SweepPoint& now, const SweepPoint& point) {
  const int depth = point.tuning.pipeline_depth;
  if (!point.is_done) {
    const bool is_stuck = point.error.find("cannot finish") != std::string::npos;
    return fmt::format(
        "Depth {} cannot finish{}.", depth,
        is_stuck && depth == 1 ? ": each rank waits for the next to free its buffer" : "");
  }
  if (std::abs(change(now, point)) < kFelt) return fmt::format("Depth {} is as fast.", depth);
  return fmt::format("Depth {}: {}.", depth, change_text(now, point));
}

}  // namespace

Answer answer_depth(const QuestionFacts& facts) {
  Answer answer{Question::kDepth, {}, -1};
  const int now = facts.now.tuning.pipeline_depth;
  if (facts.now.tuning.ranks == 1) {
    answer.text = "One rank receives nothing.";
    return answer;
  }
  if (!facts.now.is_done) {
    answer.text = "The scenario cannot run as it is.";
    return answer;
  }
  std::vector<SweepPoint> deeper;
  for (const SweepPoint& point : done_of(facts.depths)) {
    if (point.tuning.pipeline_depth > now) deeper.push_back(point);
  }
  const auto best = std::min_element(
      deeper.begin(), deeper.end(),
      [](const SweepPoint& a, const SweepPoint& b) { return a.makespan_ps < b.makespan_ps; });
  if (best == deeper.end() || change(facts.now, *best) > -kFelt) {
    answer.text = fmt::format("Nothing: no deeper pipeline is faster than depth {} ({}).", now,
                              format_time(facts.now.makespan_ps));
  } else {
    answer.text = gain_text(facts.now, deeper, *best);
  }
  for (const SweepPoint& point : facts.depths) {
    if (point.tuning.pipeline_depth != now - 1) continue;
    answer.text += " " + shallower_text(facts.now, point);
  }
  return answer;
}

Answer answer_link(const QuestionFacts& facts) {
  Answer answer{Question::kLink, {}, -1};
  if (!facts.now.is_done || !facts.twice.is_done) {
    answer.text = "The scenario cannot run as it is.";
    return answer;
  }
  const double before = exposed_share(facts.now.metrics);
  const double after = exposed_share(facts.twice.metrics);
  std::string exposed = "no communication is exposed";
  if (std::max(before, after) >= kFelt / 2) {
    exposed = fmt::format("exposed communication goes from {} to {} of the time", percent(before),
                          percent(after));
    // The shares of an average rank add up: what is neither computing nor exposed is waiting.
    if (before - after > kLastPart - change(facts.now, facts.twice)) {
      exposed += ", but waiting for other ranks takes its place";
    }
  }
  answer.text =
      std::abs(change(facts.now, facts.twice)) < kFelt
          ? fmt::format("Nothing: it stays {}; {}.", format_time(facts.now.makespan_ps), exposed)
          : fmt::format("{}; {}.", change_text(facts.now, facts.twice), exposed);
  return answer;
}

std::vector<Answer> answer_questions(const Study& study, const std::stop_token& stop) {
  const QuestionFacts facts = question_facts(study, stop);
  std::vector<Answer> answers;
  for (const Question question : kQuestions) {
    switch (question) {
      case Question::kHiding:
        answers.push_back(answer_hiding(facts));
        break;
      case Question::kLateRank:
        answers.push_back(answer_late_rank(study));
        break;
      case Question::kDepth:
        answers.push_back(answer_depth(facts));
        break;
      case Question::kLink:
        answers.push_back(answer_link(facts));
        break;
    }
  }
  return answers;
}

}  // namespace ring
