// A timeline view on a made-up ring, with the places of its parts.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QScrollBar>
#include <QWheelEvent>
#include <QtTest>
#include <memory>

#include "core/run_graph.h"
#include "gui/timeline/timeline_header.h"
#include "gui/timeline/timeline_painter.h"
#include "gui/timeline/timeline_view.h"

namespace ring::gui {

inline constexpr Picoseconds kStepPs = 100'000'000;  ///< 100 us

/// What a made-up ring is like.
struct RingShape {
  int ranks = 3;
  int64_t steps = 10;
  double pace = 1;  ///< All times are multiplied by it.
};

/// Every step of every rank: op 3i sends, posted at its beginning, under way from 10 % to 40 %;
/// op 3i + 1 receives at the same time; op 3i + 2 attends from 0 to 80 %.
inline std::shared_ptr<const RunData> ring_run(const RingShape& shape, TimelineOrigin origin) {
  RunData run;
  run.name = "made up";
  run.timeline.origin = origin;
  run.timeline.ranks = shape.ranks;
  run.timeline.lanes = 3;
  const auto at = [&](int64_t step, int percent) {
    return static_cast<Picoseconds>(shape.pace *
                                    static_cast<double>(step * kStepPs + kStepPs / 100 * percent));
  };
  for (int32_t rank = 0; rank < shape.ranks; ++rank) {
    for (int64_t i = 0; i < shape.steps; ++i) {
      Slice s;
      s.step = static_cast<int32_t>(i);
      s.kv_shard = static_cast<int32_t>((rank + i) % shape.ranks);
      const auto add = [&](OpKind kind, int32_t lane, int32_t peer, int begin, int end) {
        s.op = {rank, 3 * i + (lane + 2) % 3};
        s.kind = kind;
        s.lane = lane;
        s.peer = peer;
        s.bytes = peer >= 0 ? 1 << 20 : 0;
        s.flops = peer < 0 ? 1'000'000 : 0;
        s.posted_ps = at(i, 0);
        s.start_ps = at(i, begin);
        s.end_ps = at(i, end);
        run.timeline.slices.push_back(s);
      };
      add(OpKind::kAttend, 0, -1, 0, 80);
      if (shape.ranks == 1) continue;
      add(OpKind::kSend, 1, (rank + 1) % shape.ranks, 10, 40);
      add(OpKind::kReceive, 2, (rank + shape.ranks - 1) % shape.ranks, 10, 40);
    }
  }
  sort_slices(run.timeline);
  return std::make_shared<const RunData>(std::move(run));
}

inline std::shared_ptr<const TimelineModel> ring_model(const RingShape& shape) {
  RingShape predicted = shape;
  predicted.pace *= 0.9;
  return build_timeline_model(ring_run(shape, TimelineOrigin::kMeasured),
                              ring_run(predicted, TimelineOrigin::kPredicted));
}

class TimelineFixture : public testing::Test {
 protected:
  explicit TimelineFixture(std::shared_ptr<const TimelineModel> model = ring_model({})) {
    view.resize(1000, 600);
    view.show();
    view.set_runs(std::move(model));
    view.setFocus();
    QApplication::processEvents();
  }

  TimelineLayout layout() const {
    return {*view.model(), view.layout_mode(), RowMetrics(view.fontMetrics().height())};
  }
  ViewGeometry geometry() const {
    const TimelineLayout rows = layout();
    const QList<QScrollBar*> bars = view.findChildren<QScrollBar*>();
    const int bar = bars.front()->isHidden() ? 0 : bars.front()->width();
    return {QSize(view.width() - bar, view.height()), gutter_width(&rows, view.font()),
            rows.metrics().bar,
            header_lines(view.model(), view.layout_mode(), view.font(), view.width())};
  }
  double x_of(Picoseconds at_ps) const {
    const auto [from, to] = view.time_range();
    const QRect plot = geometry().plot;
    return TimeScale(from, to, plot.left(), plot.width()).x_of(at_ps);
  }
  /// The middle of the slice's bar.
  QPoint place_of(SliceRef ref) const {
    const TimelineLayout rows = layout();
    const Slice& slice = *view.model()->slice(ref);
    const LayoutRow& row = rows.rows()[static_cast<size_t>(*rows.row_of(*view.model(), ref))];
    const int y = geometry().plot.top() - view.scroll_y() + rows.line_y(row, ref.origin) +
                  rows.line_height(row, ref.origin) / 2;
    return {static_cast<int>(x_of((slice.start_ps + slice.end_ps) / 2)), y};
  }
  SliceRef find(OpKind kind, int rank, int step,
                TimelineOrigin origin = TimelineOrigin::kMeasured) const {
    const auto& slices = view.model()->run(origin)->timeline().slices;
    for (uint32_t i = 0; i < slices.size(); ++i) {
      if (slices[i].kind == kind && slices[i].op.rank == rank && slices[i].step == step) {
        return {origin, i};
      }
    }
    ADD_FAILURE() << "no such slice";
    return {};
  }
  double span() const {
    const auto [from, to] = view.time_range();
    return static_cast<double>(to - from);
  }
  void key(Qt::Key key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QTest::keyClick(&view, key, modifiers);
  }
  void type(char sign) { QTest::keyClick(&view, sign); }
  void wheel(QPointF at, int notches, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    QWheelEvent event(at, view.mapToGlobal(at), QPoint(), QPoint(0, 120 * notches), Qt::NoButton,
                      modifiers, Qt::NoScrollPhase, false);
    QApplication::sendEvent(&view, &event);
  }
  void mouse(QEvent::Type type, QPointF at, Qt::MouseButton button = Qt::LeftButton,
             Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    const bool is_move = type == QEvent::MouseMove;
    QMouseEvent event(type, at, view.mapToGlobal(at), is_move ? Qt::NoButton : button,
                      type == QEvent::MouseButtonRelease ? Qt::NoButton : button, modifiers);
    QApplication::sendEvent(&view, &event);
  }
  void drag(QPointF from, QPointF to, Qt::MouseButton button = Qt::LeftButton,
            Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
    mouse(QEvent::MouseButtonPress, from, button, modifiers);
    mouse(QEvent::MouseMove, (from + to) / 2, button, modifiers);
    mouse(QEvent::MouseMove, to, button, modifiers);
    mouse(QEvent::MouseButtonRelease, to, button, modifiers);
  }

  TimelineView view;
};

}  // namespace ring::gui
