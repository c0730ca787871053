// Sessions, runs, scenarios and foreign files, opened and saved.
#include <gmock/gmock.h>

#include <QDropEvent>
#include <QElapsedTimer>
#include <QFile>
#include <QLineEdit>
#include <QMimeData>
#include <QTabWidget>

#include "core/error.h"
#include "core/formats/example_scenarios.h"
#include "core/formats/file_io.h"
#include "core/formats/machine_json.h"
#include "core/formats/run_files.h"
#include "core/formats/scenario_toml.h"
#include "core/machine_presets.h"
#include "gui/session/open_file.h"
#include "gui/session/session_file.h"
#include "sim/study.h"
#include "tests/gui/window/window_testing.h"

namespace ring::gui {
namespace {

using testing::HasSubstr;

class Files : public WindowTest {
 protected:
  std::string file(const char* name) const { return path(name).toStdString(); }

  /// A run file with a measured and a predicted timeline, both simulated.
  RunFile two_timelines() const {
    const Scenario scenario = small_scenario();
    const RingProgram program = plan(scenario.problem, scenario.tuning);
    Machine machine = machine_preset("dgx-a100");
    RunFile run = begin_run_file(program, "dgx-a100");
    run.predicted = simulate(program, machine).timeline;
    machine.noise.per_op = 0.2;
    SimulationOptions noisy;
    noisy.noise_seed = 7;
    run.measured = simulate(program, machine, noisy).timeline;
    run.measured->origin = TimelineOrigin::kMeasured;
    run.measured_metrics = measure(*run.measured);
    run.predicted_metrics = measure(*run.predicted);
    run.measured_steps_ps = {run.measured->makespan_ps()};
    return run;
  }

  std::string refusal(const std::string& path) {
    try {
      open_file(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "it was opened";
  }
};

SessionView some_view() {
  SessionView view;
  view.tab = "ring";
  view.theme = "dark";
  view.layout = "overlaid";
  view.from_ps = 5;
  view.to_ps = 5000;
  view.is_fitted = false;
  view.cursor_ps = 77;
  view.scroll_y = 12;
  view.search = "attend r3";
  view.marks = {{10, "here"}, {20, ""}};
  view.sweep = "strategies";
  view.sweep_value = 2;
  view.hop_colors = "slack";
  view.geometry = "AAAA";
  view.docks = "BBBB";
  return view;
}

TEST(SuggestedFile, IsTheNameOfTheScenarioWithTheFirstEnding) {
  EXPECT_EQ(suggested_file("2 nodes of 4, one NIC each", "Sessions (*.ringscope)"),
            "2-nodes-of-4-one-NIC-each.ringscope");
  EXPECT_EQ(suggested_file("a/b..", "Pictures (*.svg *.pdf)"), "a-b...svg");
  EXPECT_EQ(suggested_file("", "Runs (*.json *.json.gz)"), "ring.json");
}

TEST_F(Files, AnotherScenarioStartsAtItsBeginning) {
  MainWindow window(small_scenario());
  window.resize(900, 400);
  window.show();
  wait_until_settled(window);
  TimelineView& timeline = window.timeline();
  timeline.set_scroll_y(100);
  timeline.set_cursor_ps(1000);
  timeline.set_marks({{500, "A"}});
  timeline.search("rank 1");
  timeline.set_time_range(0, 1000);
  EXPECT_GT(timeline.scroll_y(), 0);
  window.files().open_example(1);
  wait_until_settled(window);
  EXPECT_EQ(timeline.scroll_y(), 0);
  EXPECT_EQ(timeline.cursor_ps(), 0);
  EXPECT_TRUE(timeline.marks().empty());
  EXPECT_TRUE(timeline.search_text().isEmpty());
  EXPECT_GE(timeline.time_range().second, window.workspace().model()->end_ps);
}

TEST_F(Files, SessionTextReadsBackEqual) {
  Session session;
  session.scenario = small_scenario();
  session.scenario.model = "llama-3-8b";
  session.scenario.what_if = {2, 0.5, 0.1};
  session.scenario.slow_ranks = {{1, 2.5}};
  session.view = some_view();
  session.run = two_timelines();
  session.is_recorded = true;
  const std::string text = session_json(session);
  const Session again = parse_session(text, "s");
  EXPECT_TRUE(is_same(again.scenario, session.scenario));
  EXPECT_EQ(again.view, session.view);
  EXPECT_TRUE(again.is_recorded);
  ASSERT_TRUE(again.run);
  EXPECT_EQ(run_json(*again.run), run_json(*session.run));
  EXPECT_EQ(session_json(again), text);
}

TEST_F(Files, BrokenSessionsAreRefusedWithTheirPlace) {
  Session session;
  session.scenario = small_scenario();
  const std::string text = session_json(session);
  const auto with = [&text](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    try {
      parse_session(changed, "s");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("it was read");
  };
  EXPECT_THAT(with("\"tab\": \"timeline\"", "\"tab\": \"timelime\""), HasSubstr("/view/tab"));
  EXPECT_THAT(with("\"cursor_ps\": 0", "\"cursor_ps\": \"x\""), HasSubstr("/view/cursor_ps"));
  EXPECT_THAT(with("\"schema_version\": 1", "\"schema_version\": 99"), HasSubstr("99"));
  EXPECT_THAT(with("\"sweep_value\": 0", "\"sweep_value\": 9"), HasSubstr("sweep_value"));
  EXPECT_THAT(with("ranks = 4", "ranks = 0"), HasSubstr("ranks"));
  for (size_t cut = 1; cut < text.size(); cut += text.size() / 13) {
    EXPECT_THROW(parse_session(text.substr(0, cut), "s"), Error) << cut;
  }
}

TEST_F(Files, SessionIsReopenedExactlyAsItWas) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  write_run(file("run.json"), two_timelines());
  window.files().open_path(path("run.json"));
  wait_until_settled(window);
  window.workspace().edit([](Scenario& s) { s.tuning.pipeline_depth = 3; }, "depth");
  wait_until_settled(window);
  window.set_theme(Theme::kDark);
  window.timeline().set_layout_mode(LayoutMode::kOverlaid);
  const Picoseconds end_ps = window.workspace().model()->end_ps;
  window.timeline().set_time_range(end_ps / 4, end_ps / 2);
  window.timeline().set_cursor_ps(end_ps / 3);
  window.timeline().set_marks({{end_ps / 5, QStringLiteral("look")}});
  window.sweeps().set_kind(SweepKind::kSeqLen);
  window.sweeps().set_value(CandidateValue::kOverlap);
  window.ring().set_coloring(HopColoring::kSlack);
  window.parameters().hide();
  window.tabs().setCurrentIndex(2);
  window.files().save_session_to(path("s.ringscope"));

  MainWindow other(scenario_of(example_scenarios().front()));
  other.show();
  wait_until_settled(other);
  const QSignalSpy opened(&other.files(), &FileDesk::opened);
  other.files().open_path(path("s.ringscope"));
  wait_until_settled(other);
  QTest::qWait(20);
  other.files().save_session_to(path("again.ringscope"));
  Session before = parse_session(read_file(file("s.ringscope")), "s");
  Session after = parse_session(read_file(file("again.ringscope")), "again");
  // Where the frame of a window ends up is the window manager's; its size is ours.
  EXPECT_EQ(other.size(), window.size());
  for (Session* session : {&before, &after}) {
    session->view.geometry.clear();
    session->view.docks.clear();
  }
  EXPECT_EQ(session_json(after), session_json(before));
  EXPECT_TRUE(other.parameters().isHidden());
  ASSERT_TRUE(other.workspace().measured());
}

TEST_F(Files, RunIsShownWithTheScenarioAndPredictionThatItHolds) {
  MainWindow window(scenario_of(example_scenarios().front()));
  window.show();
  const RunFile run = two_timelines();
  write_run(file("run.json.gz"), run);
  window.files().open_path(path("run.json.gz"));
  wait_until_settled(window);
  const TimelineModel& model = *window.workspace().model();
  ASSERT_TRUE(model.measured);
  ASSERT_TRUE(model.predicted);
  EXPECT_EQ(model.predicted->timeline().makespan_ps(), run.predicted->makespan_ps());
  EXPECT_EQ(window.workspace().scenario().tuning.ranks, 4);
  EXPECT_EQ(window.workspace().scenario().machine, "dgx-a100");
  EXPECT_TRUE(window.workspace().is_recorded());
  EXPECT_THAT(window.answers().text().toStdString(), HasSubstr("measured"));
  // A change makes a prediction of its own.
  window.workspace().edit([](Scenario& s) { s.tuning.pipeline_depth = 4; }, "depth");
  wait_until_settled(window);
  EXPECT_FALSE(window.workspace().is_recorded());
}

TEST_F(Files, MeasuredRunIsShownThoughItCannotBePredicted) {
  MainWindow window(scenario_of(example_scenarios().front()));
  window.show();
  wait_until_settled(window);
  write_run(file("run.json"), two_timelines());
  window.files().open_path(path("run.json"));
  wait_until_settled(window);
  window.workspace().edit([](Scenario& s) { s.problem.dtype = DType::kF32; }, "data type");
  ASSERT_TRUE(eventually([&] { return !window.workspace().is_busy(); }));
  EXPECT_THAT(window.workspace().refusal().toStdString(), HasSubstr("fp32"));
  ASSERT_NE(window.timeline().model(), nullptr);
  EXPECT_TRUE(window.timeline().model()->measured);
  EXPECT_FALSE(window.timeline().model()->predicted);
}

TEST_F(Files, TruncatedAndForeignFilesAreRefused) {
  const std::string text = run_json(two_timelines());
  write_file(file("cut.json"), text.substr(0, text.size() / 2));
  EXPECT_THAT(refusal(file("cut.json")), HasSubstr("cut.json"));
  write_file(file("cut.json.gz"), text);
  QFile packed(path("cut.json.gz"));
  ASSERT_TRUE(packed.resize(packed.size() / 2));
  EXPECT_THAT(refusal(file("cut.json.gz")), HasSubstr("cut"));
  write_file(file("noise.bin"), std::string("\x7f"
                                            "ELF\0\1\2\3 not ours",
                                            20));
  EXPECT_THAT(refusal(file("noise.bin")), HasSubstr("no file that the window can open"));
  write_file(file("empty"), "");
  EXPECT_THAT(refusal(file("empty")), HasSubstr("no file that the window can open"));
  write_file(
      file("topo.txt"),
      "        GPU0  GPU1  CPU Affinity\nGPU0     X    NV12  0-31\nGPU1    NV12   X    0-31\n");
  EXPECT_THAT(refusal(file("topo.txt")), HasSubstr("topo"));
  EXPECT_THAT(refusal(file("missing.json")), HasSubstr("missing.json"));
  EXPECT_THAT(refusal(path(".").toStdString()), testing::Not(HasSubstr("it was opened")));
}

TEST_F(Files, RefusalsAreShownAndWhatWasShownStays) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  const auto study = window.workspace().study();
  write_file(file("cut.json"), run_json(two_timelines()).substr(0, 900));
  window.files().open_path(path("cut.json"));
  ASSERT_TRUE(eventually([&] { return !window.files().task().is_running(); }));
  EXPECT_THAT(window.status().message().toStdString(), HasSubstr("cut.json"));
  EXPECT_EQ(window.workspace().study(), study);
}

TEST_F(Files, KindsAreToldByContent) {
  write_file(file("a.toml"), scenario_toml(small_scenario()));
  EXPECT_TRUE(std::holds_alternative<OpenedScenario>(open_file(file("a.toml"))));
  write_machine(file("m.json"), {machine_preset("dgx-a100"), {}});
  EXPECT_TRUE(std::holds_alternative<OpenedMachine>(open_file(file("m.json"))));
  write_run(file("r.json"), two_timelines());
  EXPECT_TRUE(std::holds_alternative<OpenedRun>(open_file(file("r.json"))));
  EXPECT_TRUE(std::holds_alternative<OpenedModel>(
      open_file(std::string(RING_SOURCE_DIR) + "/experiments/models/llama-8b.json")));
}

TEST_F(Files, MachineAndModelFilesChangeTheScenario) {
  MainWindow window(small_scenario());
  write_machine(file("m.json"), {machine_preset("hgx-h100"), {}});
  window.files().open_path(path("m.json"));
  ASSERT_TRUE(eventually([&] { return !window.files().task().is_running(); }));
  EXPECT_EQ(window.workspace().scenario().machine, file("m.json"));
  window.files().open_path(QStringLiteral(RING_SOURCE_DIR "/experiments/models/llama-8b.json"));
  ASSERT_TRUE(eventually([&] { return !window.files().task().is_running(); }));
  EXPECT_EQ(window.workspace().scenario().problem.heads, 32);
  EXPECT_EQ(window.workspace().history().depth(), 2U);
}

TEST_F(Files, DroppedFilesAreOpenedAndRemembered) {
  MainWindow window(small_scenario());
  window.show();
  Scenario scenario = small_scenario();
  scenario.tuning.ranks = 2;
  scenario.name = "dropped";
  write_file(file("d.toml"), scenario_toml(scenario));
  QMimeData data;
  data.setUrls({QUrl::fromLocalFile(path("d.toml"))});
  QDragEnterEvent enter(QPoint(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &enter);
  EXPECT_TRUE(enter.isAccepted());
  QDropEvent drop(QPointF(10, 10), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&window, &drop);
  ASSERT_TRUE(eventually([&] { return window.workspace().scenario().name == "dropped"; }));
  EXPECT_EQ(window.files().recent().value(0), path("d.toml"));
}

TEST_F(Files, HugeRunIsOpenedInTheBackground) {
  RunFile run;
  run.name = "huge";
  run.program_text = "ranks 1\nlanes 1\n";
  Timeline timeline;
  timeline.origin = TimelineOrigin::kMeasured;
  timeline.ranks = 1;
  timeline.lanes = 1;
  constexpr int64_t kSlices = 1'000'000;
  std::string program = "ranks 1\nlanes 1\n";
  for (int64_t i = 0; i < kSlices; ++i) {
    Slice slice;
    slice.op = {0, i};
    slice.posted_ps = slice.start_ps = i * 2000;
    slice.end_ps = slice.start_ps + 1000;
    timeline.slices.push_back(slice);
    program += "r0 L0 compute time=1ns\n";
  }
  run.program_text = std::move(program);
  run.measured = std::move(timeline);
  run.measured_metrics = measure(*run.measured);
  write_run(file("huge.json"), run);
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  window.files().open_path(path("huge.json"));
  // The window answers while it reads.
  QElapsedTimer timer;
  timer.start();
  qint64 longest = 0;
  while (window.files().task().is_running()) {
    const qint64 before = timer.elapsed();
    QTest::qWait(10);
    longest = std::max(longest, timer.elapsed() - before);
  }
  ASSERT_TRUE(eventually([&] {
    return !window.workspace().is_busy() && window.workspace().model()->measured.has_value();
  }));
  EXPECT_EQ(window.workspace().model()->measured->timeline().slices.size(), size_t{kSlices});
  EXPECT_LT(longest, 2000) << "the window stood still while a file was read";
}

}  // namespace
}  // namespace ring::gui
