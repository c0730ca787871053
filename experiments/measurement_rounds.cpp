#include "experiments/measurement_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "experiments/report.h"
#include "kernels/recorder.h"

namespace ring {

namespace {

/// Shorter runs are warmed up in every round: another program's data lies in the caches.
constexpr Picoseconds kShortRun_ps = 50'000'000'000;
constexpr std::chrono::milliseconds kBetweenChecks{200};
constexpr double kLongestWait_s = 4;

}  // namespace

std::string describe(const Steadiness& steadiness) {
  if (steadiness.made_again == 0 && steadiness.kept_slow == 0) return {};
  std::string text = fmt::format(
      "the cores were up to {} slower than while calibrating; beside {} of runs, {} made for that",
      format_percent(steadiness.slowest_ratio - 1),
      steadiness.batches == 1 ? "1 batch" : fmt::format("{} batches", steadiness.batches),
      steadiness.made_again == 1 ? "1 repeat was"
                                 : fmt::format("{} repeats were", steadiness.made_again));
  if (steadiness.kept_slow > 0) {
    text += fmt::format(", and {} had to be kept", steadiness.kept_slow);
  }
  return text;
}

MeasurementRounds::MeasurementRounds(const RoundsOptions& options,
                                     const std::atomic<bool>& is_interrupted)
    : options_(options), is_interrupted_(is_interrupted) {
  steadiness_.is_checked = options.calibrated_check_s > 0;
  if (steadiness_.is_checked) speed_check_ = std::make_unique<SpeedCheck>();
}

void MeasurementRounds::add(const RingProgram& program, const DataSource& data) {
  ExecutorOptions options;
  options.interrupt = &is_interrupted_;
  rows_.push_back(std::make_unique<Row>(program, data, options));
  rows_.back()->measurement.is_complete = false;
}

void MeasurementRounds::run(const OnBatch& on_batch) {
  const int rounds = (options_.repeats + options_.runs_per_round - 1) / options_.runs_per_round;
  const double batches = static_cast<double>(rows_.size()) * rounds;
  if (steadiness_.is_checked) last_slowness_ = slowness();
  for (int round = 0; round < rounds; ++round) {
    const int runs =
        std::min(options_.runs_per_round, options_.repeats - round * options_.runs_per_round);
    for (size_t i = 0; i < rows_.size(); ++i) {
      on_batch(i, steadiness_.batches / batches);
      if (!measure_batch(*rows_[i], runs)) return;
      ++steadiness_.batches;
    }
  }
  for (const auto& row : rows_) row->measurement.is_complete = true;
}

/// One batch that counts; false when interrupted.
bool MeasurementRounds::measure_batch(Row& row, int runs) {
  for (;;) {
    if (steadiness_.is_checked && last_slowness_ > 1 + options_.tolerance) wait_until_steady();
    const double before = last_slowness_;
    const int64_t start_ns = now_ns();
    const size_t first = row.timelines.size();
    if (!run_batch(row, runs)) return false;
    if (!steadiness_.is_checked) return true;
    last_slowness_ = slowness();
    if (std::max(before, last_slowness_) <= 1 + options_.tolerance) return true;
    if (spent_s_ >= options_.patience_s) {
      ++steadiness_.kept_slow;
      return true;
    }
    ++steadiness_.made_again;
    spent_s_ += seconds_since(start_ns);
    row.timelines.resize(first);
    row.measurement.steps_ps.resize(first);
  }
}

bool MeasurementRounds::run_batch(Row& row, int runs) {
  const std::vector<Picoseconds>& steps_ps = row.measurement.steps_ps;
  const bool needs_warmup = steps_ps.empty() || steps_ps.back() < kShortRun_ps;
  if (needs_warmup && !run_once(row, false)) return false;
  for (int i = 0; i < runs; ++i) {
    if (!run_once(row, true)) return false;
  }
  select_timeline(row.timelines, row.measurement);
  return true;
}

bool MeasurementRounds::run_once(Row& row, bool is_recorded) {
  const Timeline& timeline = row.executor.run();
  if (is_interrupted_.load() || !timeline.is_complete) {
    if (row.timelines.empty()) row.measurement.timeline = timeline;
    return false;
  }
  if (!is_recorded) return true;
  row.measurement.steps_ps.push_back(timeline.makespan_ps());
  row.timelines.push_back(timeline);
  return true;
}

/// Time of the check over that of the calibration.
double MeasurementRounds::slowness() {
  const double ratio = speed_check_->measure() / options_.calibrated_check_s;
  steadiness_.slowest_ratio = std::max(steadiness_.slowest_ratio, ratio);
  return ratio;
}

void MeasurementRounds::wait_until_steady() {
  const int64_t start_ns = now_ns();
  const double longest_s = std::min(kLongestWait_s, options_.patience_s - spent_s_);
  while (last_slowness_ > 1 + options_.tolerance && seconds_since(start_ns) < longest_s &&
         !is_interrupted_.load()) {
    std::this_thread::sleep_for(kBetweenChecks);
    last_slowness_ = slowness();
  }
  spent_s_ += seconds_since(start_ns);
}

}  // namespace ring
