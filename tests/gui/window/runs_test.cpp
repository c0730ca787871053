// Real runs, sweeps and the ring, from the window.
#include <gmock/gmock.h>

#include <QElapsedTimer>
#include <QTabWidget>

#include "core/machine_presets.h"
#include "core/topology_shapes.h"
#include "gui/ring_view/ring_layout.h"
#include "tests/gui/window/window_testing.h"

namespace ring::gui {
namespace {

using testing::HasSubstr;

class Runs : public WindowTest {};

TEST_F(Runs, MeasuredRunIsLaidOverThePrediction) {
  MainWindow window(runnable_scenario());
  window.show();
  window.runner().set_repeats(3);
  const QSignalSpy measured(&window.runner(), &MachineRunner::measured);
  window.runner().measure();
  ASSERT_TRUE(eventually([&] { return measured.count() == 1; }));
  EXPECT_TRUE(measured[0][1].toBool()) << measured[0][0].toString().toStdString();
  wait_until_settled(window);
  const TimelineModel& model = *window.workspace().model();
  ASSERT_TRUE(model.measured);
  ASSERT_TRUE(model.predicted);
  EXPECT_EQ(model.measured->timeline().slices.size(), model.predicted->timeline().slices.size());
  EXPECT_EQ(window.workspace().measured()->run->measured_steps_ps.size(), 3U);
  EXPECT_THAT(window.answers().text().toStdString(), HasSubstr("measured"));
}

TEST_F(Runs, MeasuringMovesToThisMachine) {
  MainWindow window(small_scenario());
  window.show();
  window.runner().set_repeats(1);
  const QSignalSpy measured(&window.runner(), &MachineRunner::measured);
  window.workspace().edit([](Scenario& s) { s.problem.dtype = DType::kF32; }, "dtype");
  window.runner().measure();
  EXPECT_EQ(window.workspace().scenario().machine, "");
  ASSERT_TRUE(eventually([&] { return measured.count() == 1; }));
}

TEST_F(Runs, WhatDoesNotFitIsRefused) {
  Scenario scenario = runnable_scenario();
  scenario.problem.mask = Mask::causal(int64_t{1} << 28);
  scenario.tuning.block_tokens = int64_t{1} << 26;
  MainWindow window(scenario);
  window.show();
  window.runner().measure();
  ASSERT_TRUE(eventually([&] { return !window.runner().task().is_running(); }));
  EXPECT_THAT(window.status().message().toStdString(), HasSubstr("memory"));
}

TEST(RunsTimed, CancelOfARealRunAnswersWithin100Ms) {
  Scenario scenario = runnable_scenario();
  scenario.problem.mask = Mask::causal(4096);
  MainWindow window(scenario);
  window.show();
  window.runner().set_repeats(100'000);
  const QSignalSpy progressed(&window.runner().task(), &Task::progressed);
  window.runner().measure();
  ASSERT_TRUE(eventually([&] { return progressed.count() >= 3; }));
  QElapsedTimer timer;
  timer.start();
  window.actions().action("cancel")->trigger();
  EXPECT_FALSE(window.runner().task().is_running());
  EXPECT_LE(timer.elapsed(), 100);
  EXPECT_FALSE(window.workspace().measured());
}

TEST_F(Runs, WindowCanBeClosedDuringARunAndASweep) {
  auto window = std::make_unique<MainWindow>(runnable_scenario());
  window->show();
  window->runner().set_repeats(100'000);
  window->runner().measure();
  window->sweeps().run();
  QTest::qWait(30);
  window->close();
  window.reset();
}

TEST_F(Runs, SweepFillsTheMapAndACellLoads) {
  MainWindow window(small_scenario());
  window.show();
  window.tabs().setCurrentWidget(&window.sweeps());
  ASSERT_TRUE(eventually([&] { return !window.sweeps().task().is_running(); }));
  const SweepResults& results = window.sweeps().plot().results();
  ASSERT_EQ(results.kind, SweepKind::kBlockDepth);
  size_t done = 0;
  std::optional<size_t> other;
  for (size_t i = 0; i < results.points.size(); ++i) {
    const SweepPoint& point = results.points[i].point;
    done += point.is_done ? 1U : 0U;
    if (point.is_done && point.tuning.block_tokens == 256 && point.tuning.pipeline_depth == 5) {
      other = i;
    }
  }
  EXPECT_GT(done, results.points.size() / 2);
  ASSERT_TRUE(other);
  SweepPlot& plot = window.sweeps().plot();
  QTest::qWait(50);
  EXPECT_EQ(plot.point_at(plot.position_of(*other)), other);
  QWidget* canvas = plot.childAt(plot.position_of(*other).toPoint());
  ASSERT_NE(canvas, nullptr);
  QTest::mouseClick(canvas, Qt::LeftButton, {},
                    canvas->mapFrom(&plot, plot.position_of(*other).toPoint()));
  EXPECT_EQ(window.workspace().scenario().tuning.block_tokens, 256);
  EXPECT_EQ(window.workspace().scenario().tuning.pipeline_depth, 5);
  EXPECT_EQ(window.workspace().history().depth(), 1U);
  EXPECT_EQ(plot.current(), other);  // The frame goes along.
}

TEST_F(Runs, AMapOfAnotherScenarioIsNotLoadedButSweptAgain) {
  MainWindow window(small_scenario());
  window.show();
  SweepTab& sweeps = window.sweeps();
  window.tabs().setCurrentWidget(&sweeps);
  ASSERT_TRUE(eventually([&] { return !sweeps.task().is_running(); }));
  ASSERT_TRUE(sweeps.plot().current());
  // A value between the points: the map holds, nothing of it is framed.
  window.workspace().edit([](Scenario& s) { s.tuning.block_tokens = 192; }, "block");
  EXPECT_FALSE(sweeps.plot().current());
  window.workspace().edit([](Scenario& s) { s.tuning.blocks_per_message = 2; }, "message");
  EXPECT_FALSE(sweeps.plot().current());
  Q_EMIT sweeps.plot().point_chosen(0);
  EXPECT_EQ(window.workspace().scenario().tuning.blocks_per_message, 2);
  EXPECT_EQ(window.workspace().scenario().tuning.block_tokens, 128);
  window.tabs().setCurrentWidget(&window.timeline());
  window.tabs().setCurrentWidget(&sweeps);
  EXPECT_TRUE(sweeps.task().is_running());
  ASSERT_TRUE(eventually([&] { return !sweeps.task().is_running(); }));
  EXPECT_EQ(sweeps.plot().results().points[0].candidate.tuning.blocks_per_message, 2);
}

TEST_F(Runs, KeysWalkOverTheMap) {
  MainWindow window(small_scenario());
  window.show();
  window.tabs().setCurrentWidget(&window.sweeps());
  ASSERT_TRUE(eventually([&] { return !window.sweeps().task().is_running(); }));
  SweepPlot& plot = window.sweeps().plot();
  QTest::keyClick(&plot, Qt::Key_Up);
  ASSERT_TRUE(plot.marked());
  QTest::keyClick(&plot, Qt::Key_Up);
  QTest::keyClick(&plot, Qt::Key_Up);
  QTest::keyClick(&plot, Qt::Key_Right);
  const Tuning marked = plot.results().points[*plot.marked()].candidate.tuning;
  EXPECT_EQ(marked.pipeline_depth, 3);
  EXPECT_EQ(marked.block_tokens, 256);
  QTest::keyClick(&plot, Qt::Key_Return);
  EXPECT_EQ(window.workspace().scenario().tuning.pipeline_depth, 3);
}

TEST_F(Runs, EverySweepRunsWithEveryValue) {
  MainWindow window(small_scenario());
  window.show();
  window.tabs().setCurrentWidget(&window.sweeps());
  for (const SweepKind kind : kSweepKinds) {
    window.sweeps().set_kind(kind);
    window.sweeps().run();
    ASSERT_TRUE(eventually([&] { return !window.sweeps().task().is_running(); }));
    ASSERT_FALSE(window.sweeps().plot().results().points.empty());
    for (const CandidateValue value : kCandidateValues) {
      window.sweeps().set_value(value);
      QTest::qWait(1);
    }
    EXPECT_THAT(window.sweeps().csv(), HasSubstr("pass-kv"));
  }
}

TEST_F(Runs, SweepCanBeCancelled) {
  Scenario scenario = small_scenario();
  scenario.problem.mask = Mask::causal(1 << 18);
  MainWindow window(scenario);
  window.show();
  window.sweeps().run();
  QElapsedTimer timer;
  timer.start();
  window.sweeps().cancel();
  EXPECT_LE(timer.elapsed(), 100);
  EXPECT_FALSE(window.sweeps().task().is_running());
}

TEST(RingLayout, EveryShapeHasItsNodesInTheSquareAndItsRanksApart) {
  for (const ShapeInfo& shape : all_shapes()) {
    const Machine machine = machine_preset(shape.name);
    const int ranks = static_cast<int>(machine.processors.size());
    const RingLayout layout = lay_out_ring(machine, ranks);
    ASSERT_EQ(layout.nodes.size(), machine.topology.nodes().size()) << shape.name;
    for (const PlacedNode& node : layout.nodes) {
      EXPECT_TRUE(QRectF(0, 0, 1, 1).contains(node.at)) << shape.name;
    }
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < a; ++b) {
        const QPointF way =
            layout.ranks[static_cast<size_t>(a)] - layout.ranks[static_cast<size_t>(b)];
        EXPECT_GT(std::hypot(way.x(), way.y()), 1.5 * layout.rank_radius)
            << shape.name << " " << a << " " << b;
      }
    }
  }
}

TEST(RingLayout, WhatAProcessorIsPluggedIntoStandsBesideIt) {
  const Machine machine = machine_preset("dgx-a100");
  const RingLayout layout = lay_out_ring(machine, 8);
  const auto away = [&](int a, int b) {
    const QPointF way =
        layout.nodes[static_cast<size_t>(a)].at - layout.nodes[static_cast<size_t>(b)].at;
    return std::hypot(way.x(), way.y());
  };
  int plugged = 0;
  for (const Link& link : machine.topology.links()) {
    const auto kind_of = [&](int node) {
      return machine.topology.nodes()[static_cast<size_t>(node)].kind;
    };
    if (kind_of(link.from) != NodeKind::kGpu || kind_of(link.to) != NodeKind::kPcieSwitch) continue;
    ++plugged;
    for (const int other : machine.processors) {
      EXPECT_LE(away(link.from, link.to), away(other, link.to)) << link.from << " " << link.to;
    }
  }
  EXPECT_EQ(plugged, 8);
}

TEST(RingLayout, RanksThatShareAProcessorStandApart) {
  const Machine machine = machine_preset("ring:ranks=2");
  const RingLayout layout = lay_out_ring(machine, 6);
  ASSERT_EQ(layout.ranks.size(), 6U);
  for (size_t a = 0; a < 6; ++a) {
    for (size_t b = 0; b < a; ++b) {
      const QPointF way = layout.ranks[a] - layout.ranks[b];
      EXPECT_GT(std::hypot(way.x(), way.y()), 2 * layout.rank_radius) << a << " " << b;
    }
  }
}

TEST(RingLayout, SharedProcessorsStandApartFromTheirRanks) {
  for (const int ranks : {3, 4, 16}) {
    const Machine machine = machine_preset("ring:ranks=2");
    const RingLayout layout = lay_out_ring(machine, ranks);
    ASSERT_TRUE(layout.shares_processors);
    for (const int node : machine.processors) {
      for (const QPointF& rank : layout.ranks) {
        const QPointF way = layout.nodes[static_cast<size_t>(node)].at - rank;
        EXPECT_GT(std::hypot(way.x(), way.y()), 2 * layout.rank_radius);
      }
    }
  }
}

TEST_F(Runs, RingFollowsTheCursorOfTheTimeline) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  window.timeline().set_cursor_ps(12345);
  EXPECT_EQ(window.ring().cursor_ps(), 12345);
  Q_EMIT window.ring().cursor_wanted(54321);
  EXPECT_EQ(window.timeline().cursor_ps(), 54321);
  EXPECT_THAT(window.ring().csv(), HasSubstr("0,1,"));
  EXPECT_THAT(window.ring().accessibleDescription().toStdString(), HasSubstr("busy"));
  window.actions().action("play")->trigger();
  EXPECT_TRUE(window.is_playing());
  ASSERT_TRUE(eventually([&] { return window.timeline().cursor_ps() != 54321; }));
  window.actions().action("play")->trigger();
  EXPECT_FALSE(window.is_playing());
}

}  // namespace
}  // namespace ring::gui
