#include "gui/bench/frames.h"

#include <QApplication>
#include <QImage>
#include <QPixmap>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "core/error.h"
#include "gui/timeline/timeline_view.h"

namespace ring::gui {
namespace {

constexpr int kRanks = 8;
constexpr QSize kWindow{1600, 900};

/// One in three slices computes, sends, receives.
std::shared_ptr<const RunData> run_of(int64_t slices, TimelineOrigin origin, double pace) {
  std::mt19937_64 random(7);
  RunData run;
  run.name = "made up";
  run.timeline.origin = origin;
  run.timeline.ranks = kRanks;
  run.timeline.lanes = 3;
  const int64_t steps = slices / (3 * kRanks);
  for (int32_t rank = 0; rank < kRanks; ++rank) {
    Picoseconds at = 0;
    for (int64_t i = 0; i < steps; ++i) {
      const auto length =
          static_cast<Picoseconds>(pace * static_cast<double>(800'000 + random() % 400'000));
      const auto gap = static_cast<Picoseconds>(random() % 8 == 0 ? 200'000 : 5'000);
      const auto step = static_cast<int32_t>(i % kRanks);
      const int32_t next = (rank + 1) % kRanks, before = (rank + kRanks - 1) % kRanks;
      const auto slice = [&](OpKind kind, int32_t lane, int32_t peer) {
        Slice s;
        s.op = {rank, 3 * i + lane};
        s.kind = kind;
        s.lane = lane;
        s.step = step;
        s.peer = peer;
        s.kv_shard = (rank + step) % kRanks;
        s.posted_ps = s.start_ps = at;
        s.end_ps = at + length;
        return s;
      };
      run.timeline.slices.push_back(slice(OpKind::kAttend, 0, -1));
      for (const bool is_send : {true, false}) {
        Slice s = is_send ? slice(OpKind::kSend, 1, next) : slice(OpKind::kReceive, 2, before);
        s.bytes = 1 << 20;
        s.start_ps = at + length / 4;
        s.end_ps = at + length / 4 + length / 2;
        run.timeline.slices.push_back(s);
      }
      at += length + gap;
    }
  }
  sort_slices(run.timeline);
  return std::make_shared<const RunData>(std::move(run));
}

class CountedView : public TimelineView {
 public:
  int frames = 0;

 protected:
  void paintEvent(QPaintEvent* event) override {
    ++frames;
    TimelineView::paintEvent(event);
  }
};

void check_picture(TimelineView& view) {
  const QImage picture = view.grab().toImage();
  const QRgb attend = op_color(OpKind::kAttend).rgb();
  int64_t found = 0;
  for (int y = 0; y < picture.height(); ++y) {
    for (int x = 0; x < picture.width(); ++x) found += picture.pixel(x, y) == attend ? 1 : 0;
  }
  // Attention fills most of the compute lanes; two of them are surely in sight.
  if (found < picture.width() * 10) {
    throw Error(ErrorKind::kWrongResult, "the timeline shows no attention, so it is not timed");
  }
}

/// From the request to the picture in the window's memory.
double time_frame(CountedView& view, double from_ps, double to_ps) {
  const auto start = std::chrono::steady_clock::now();
  view.set_time_range(static_cast<Picoseconds>(from_ps), static_cast<Picoseconds>(to_ps));
  const int before = view.frames;
  QCoreApplication::sendPostedEvents(&view, QEvent::UpdateRequest);
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - start;
  if (view.frames != before + 1) {
    throw Error(ErrorKind::kWrongResult, "a frame was not drawn, so it is not timed");
  }
  return passed.count();
}

using Ranges = std::vector<std::pair<double, double>>;

/// The least time of each frame over some rounds: what else the machine did in a round drops out.
std::vector<double> quickest(CountedView& view, const Ranges& ranges, int rounds) {
  std::vector<double> times(ranges.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      times[i] = std::min(times[i], time_frame(view, ranges[i].first, ranges[i].second));
    }
  }
  return times;
}

}  // namespace

std::shared_ptr<const TimelineModel> ring_of_slices(int64_t slices) {
  return build_timeline_model(run_of(slices / 2, TimelineOrigin::kMeasured, 1.0),
                              run_of(slices / 2, TimelineOrigin::kPredicted, 0.97));
}

FrameTimes time_frames(const std::shared_ptr<const TimelineModel>& model, int frames, int rounds) {
  CountedView view;
  view.resize(kWindow);
  view.set_runs(model);
  view.show();
  QApplication::processEvents();
  check_picture(view);
  const auto end = static_cast<double>(model->end_ps);
  Ranges pans, zooms;
  for (const double share : {0.5, 0.05, 0.001}) {
    const double span = end * share;
    for (int i = 0; i < frames; ++i) {
      const double from = (end - span) * (i + 0.5) / frames;
      pans.emplace_back(from, from + span);
    }
  }
  const double deepest = std::log(end / 1e6);  // Down to a microsecond.
  for (int i = 0; i < 2 * frames; ++i) {
    const double depth = deepest * (i < frames ? i + 0.5 : 2 * frames - i) / frames;
    const double span = end * std::exp(-depth);
    const double from = (end - span) * 0.37;
    zooms.emplace_back(from, from + span);
  }
  return {quickest(view, pans, rounds), quickest(view, zooms, rounds)};
}

}  // namespace ring::gui
