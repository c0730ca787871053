#include "kernels/measurement.h"

#include <algorithm>
#include <numeric>

#include "core/fit.h"
#include "kernels/recorder.h"

namespace ring {

namespace {

std::vector<double> as_doubles(const std::vector<Picoseconds>& times_ps) {
  return {times_ps.begin(), times_ps.end()};
}

/// Number of the run with the middle time, the lower of two.
size_t middle_run(const std::vector<Picoseconds>& times_ps) {
  std::vector<size_t> order(times_ps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return times_ps[a] < times_ps[b]; });
  return order[(order.size() - 1) / 2];
}

}  // namespace

Picoseconds Measurement::median_ps() const {
  return static_cast<Picoseconds>(median(as_doubles(steps_ps)));
}

double Measurement::spread() const {
  const std::vector<double> times = as_doubles(steps_ps);
  const double middle = median(times);
  return middle > 0 ? (quantile(times, 0.9) - quantile(times, 0.1)) / 2 / middle : 0;
}

size_t select_timeline(const std::vector<Timeline>& timelines, Measurement& measurement) {
  if (timelines.empty()) return 0;
  const size_t middle = middle_run(measurement.steps_ps);
  measurement.timeline = timelines[middle];
  return middle;
}

Measurement measure_runs(Executor& executor, int warmups, int repeats,
                         const std::atomic<bool>& is_interrupted,
                         const std::function<void(int)>& on_run) {
  Measurement measurement;
  std::vector<Timeline> timelines;
  std::vector<int64_t> begins_ns;
  for (int i = 0; i < warmups + repeats; ++i) {
    on_run(i);
    const int64_t began_ns = now_ns();
    const Timeline& timeline = executor.run();
    if (is_interrupted.load() || !timeline.is_complete) {
      measurement.is_complete = false;
      if (timelines.empty()) measurement.timeline = timeline;
      break;
    }
    if (i < warmups) continue;
    measurement.steps_ps.push_back(timeline.makespan_ps());
    timelines.push_back(timeline);
    begins_ns.push_back(began_ns);
  }
  const size_t middle = select_timeline(timelines, measurement);
  if (!begins_ns.empty()) measurement.began_ns = begins_ns[middle];
  return measurement;
}

}  // namespace ring
