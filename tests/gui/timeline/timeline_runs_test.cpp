// The timeline with runs of all kinds: none, empty, one rank, one run, foreign, huge; and its
// files.
#include <gmock/gmock.h>

#include <QAccessible>
#include <QBackingStore>
#include <QBuffer>
#include <QLineEdit>
#include <QPainter>
#include <QPdfWriter>
#include <QScrollBar>
#include <QSvgGenerator>

#include "core/program_text.h"
#include "core/strategy.h"
#include "gui/timeline/timeline_painter.h"
#include "tests/core/small_problem.h"
#include "tests/gui/timeline/timeline_fixture.h"

namespace ring::gui {
namespace {

using testing::HasSubstr;

class TimelineRuns : public TimelineFixture {
 protected:
  /// Everything a user can do, and a picture after each.
  void do_everything() {
    view.grab();
    const QPointF middle(500, 300);
    for (const TimelineActionInfo& info : timeline_actions()) {
      view.trigger(info.action);
      view.grab();
    }
    drag(middle, middle + QPointF(80, 60));
    for (const auto modifier : {Qt::NoModifier, Qt::ControlModifier, Qt::ShiftModifier}) {
      wheel(middle, 3, modifier);
      wheel(middle, -3, modifier);
    }
    mouse(QEvent::MouseMove, middle, Qt::NoButton);
    QTest::mouseClick(&view, Qt::LeftButton, Qt::NoModifier, QPoint(500, 5));
    QTest::mouseClick(&view, Qt::LeftButton, Qt::NoModifier, QPoint(500, 40));
    for (const LayoutMode mode : {LayoutMode::kMeasured, LayoutMode::kPredicted,
                                  LayoutMode::kOverlaid, LayoutMode::kStacked}) {
      view.set_layout_mode(mode);
      view.search("attend");
      view.grab();
      view.visible_csv();
    }
    view.resize(40, 30);
    view.grab();
    view.resize(1000, 600);
    view.grab();
  }
  static int64_t count(const QImage& picture, QColor color) {
    int64_t found = 0;
    for (int y = 0; y < picture.height(); ++y) {
      for (int x = 0; x < picture.width(); ++x) found += picture.pixel(x, y) == color.rgb() ? 1 : 0;
    }
    return found;
  }
  QImage picture(double ratio = 1, std::optional<Theme> theme = std::nullopt) const {
    QImage image(QSize(900, 500) * ratio, QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    QPainter painter(&image);
    RenderOptions options;
    options.pixel_ratio = ratio;
    options.theme = theme;
    view.render_to(painter, QSize(900, 500), options);
    return image;
  }
};

TEST_F(TimelineRuns, NoneAtAll) {
  view.set_runs(nullptr);
  do_everything();
  EXPECT_EQ(view.search("attend"), 0);
  EXPECT_TRUE(view.selection().is_empty);
  EXPECT_EQ(view.visible_csv(), "");
}

TEST_F(TimelineRuns, WithoutAnyOp) {
  RunData nothing;
  nothing.timeline.ranks = 4;
  nothing.timeline.lanes = 3;
  view.set_runs(build_timeline_model(nullptr, std::make_shared<const RunData>(nothing)));
  do_everything();
}

TEST_F(TimelineRuns, OneRank) {
  view.set_runs(ring_model({.ranks = 1}));
  do_everything();
  view.set_layout_mode(LayoutMode::kMeasured);
  view.select_range(0, 3 * kStepPs);
  EXPECT_EQ(view.selection().measured->work.count, 3);
}

TEST_F(TimelineRuns, OnlyMeasured) {
  view.set_runs(build_timeline_model(ring_run({}, TimelineOrigin::kMeasured), nullptr));
  do_everything();
  view.select_range(0, kStepPs);
  EXPECT_TRUE(view.selection().measured.has_value());
  EXPECT_FALSE(view.selection().predicted.has_value());
}

TEST_F(TimelineRuns, OnlyPredicted) {
  view.set_runs(build_timeline_model(nullptr, ring_run({}, TimelineOrigin::kPredicted)));
  do_everything();
  EXPECT_GT(count(picture(), op_color(OpKind::kAttend)), 100);
}

TEST_F(TimelineRuns, OpsWithoutLength) {
  RunData run;
  run.timeline.ranks = 1;
  run.timeline.lanes = 1;
  for (int64_t i = 0; i < 5; ++i) {
    Slice s;
    s.op = {0, i};
    s.kind = OpKind::kMerge;
    s.posted_ps = s.start_ps = s.end_ps = i * 1000;
    run.timeline.slices.push_back(s);
  }
  view.set_runs(build_timeline_model(nullptr, std::make_shared<const RunData>(run)));
  do_everything();
  view.set_layout_mode(LayoutMode::kPredicted);
  view.search({});
  view.zoom_to_fit();
  // Each is seen as a thin line, and can be selected with the mouse.
  const SliceRef third{TimelineOrigin::kPredicted, 2};
  QTest::mouseClick(&view, Qt::LeftButton, Qt::NoModifier, place_of(third));
  EXPECT_EQ(view.selected_slice(), third);
}

TEST_F(TimelineRuns, AllOpsWithoutAnyLengthAtTimeZero) {
  RunData run;
  run.timeline.ranks = 1;
  run.timeline.lanes = 1;
  run.timeline.slices.resize(3);
  for (int64_t i = 0; i < 3; ++i) run.timeline.slices[static_cast<size_t>(i)].op = {0, i};
  view.set_runs(build_timeline_model(std::make_shared<const RunData>(run), nullptr));
  do_everything();
}

TEST_F(TimelineRuns, TimesFarApartAndNegative) {
  RunData run;
  run.timeline.ranks = 1;
  run.timeline.lanes = 1;
  for (int64_t i = 0; i < 2; ++i) {
    Slice s;
    s.op = {0, i};
    s.posted_ps = s.start_ps = i == 0 ? -4'000'000'000'000'000'000 : 10;
    s.end_ps = i == 0 ? 5 : 4'000'000'000'000'000'000;
    run.timeline.slices.push_back(s);
  }
  view.set_runs(build_timeline_model(std::make_shared<const RunData>(run), nullptr));
  do_everything();
}

TEST_F(TimelineRuns, OfDifferentProgramsAreShownWithoutDifferences) {
  const auto model = build_timeline_model(ring_run({.ranks = 2}, TimelineOrigin::kMeasured),
                                          ring_run({.ranks = 4}, TimelineOrigin::kPredicted));
  EXPECT_TRUE(model->drift.empty());
  EXPECT_THAT(model->notes.back(), HasSubstr("different programs"));
  view.set_runs(model);
  view.set_layout_mode(LayoutMode::kOverlaid);
  const TimelineLayout rows = layout();
  for (const LayoutRow& row : rows.rows()) EXPECT_NE(row.kind, RowKind::kDifference);
  EXPECT_EQ(rows.groups().size(), 4U);
  do_everything();
}

TEST_F(TimelineRuns, OverlaidRunsHaveADifferenceRow) {
  const auto differences = [&] {
    const TimelineLayout rows = layout();
    return std::count_if(rows.rows().begin(), rows.rows().end(),
                         [](const LayoutRow& row) { return row.kind == RowKind::kDifference; });
  };
  EXPECT_EQ(differences(), 0);
  view.set_layout_mode(LayoutMode::kOverlaid);
  EXPECT_EQ(differences(), 3);
  view.grab();
}

TEST_F(TimelineRuns, AMillionSlices) {
  const auto model = ring_model({.ranks = 4, .steps = 41'667});
  ASSERT_GT(model->measured->timeline().slices.size() * 2, 990'000U);
  view.set_runs(model);
  do_everything();
  view.set_layout_mode(LayoutMode::kStacked);
  view.select_range(0, model->end_ps);
  EXPECT_EQ(view.selection().measured->work.count, 4 * 41'667 * 3);
  EXPECT_EQ(view.search("attend rank 2"), 2 * 41'667);
  view.set_time_range(20'000 * kStepPs, 20'010 * kStepPs);
  const SliceRef attend = find(OpKind::kAttend, 0, 20'004);
  view.search({});
  QTest::mouseClick(&view, Qt::LeftButton, Qt::NoModifier, place_of(attend));
  EXPECT_EQ(view.selected_slice(), attend);
}

TEST_F(TimelineRuns, AProgramGivesCriticalPathAndMemory) {
  Tuning tuning;
  tuning.ranks = 2;
  tuning.block_tokens = 8;
  const auto program = std::make_shared<const RingProgram>(
      plan(testing_support::small_problem(64, "causal"), tuning));
  RunData run;
  run.program = program;
  run.timeline.ranks = 2;
  run.timeline.lanes = program->lanes;
  for (int32_t rank = 0; rank < 2; ++rank) {
    const auto& ops = program->rank_programs[static_cast<size_t>(rank)].ops;
    for (int64_t i = 0; i < std::ssize(ops); ++i) {
      Slice s = slice_of(*program, {rank, i});
      s.posted_ps = s.start_ps = i * 1000;
      s.end_ps = s.start_ps + 900;
      run.timeline.slices.push_back(s);
    }
  }
  sort_slices(run.timeline);
  const auto model = build_timeline_model(nullptr, std::make_shared<const RunData>(run));
  EXPECT_TRUE(model->notes.empty());
  ASSERT_TRUE(model->predicted->has_critical_path);
  EXPECT_GT(model->peak_memory_bytes, 0);
  view.set_runs(model);
  do_everything();
  view.search({});
  view.set_layout_mode(LayoutMode::kPredicted);
  view.zoom_to_fit();
  EXPECT_GT(count(picture(), critical_color()), 50);
}

TEST_F(TimelineRuns, AWrongProgramIsSaidAndNotUsed) {
  auto run = std::make_shared<RunData>(*ring_run({}, TimelineOrigin::kMeasured));
  run->program = std::make_shared<const RingProgram>(parse_program("ranks 1\nlanes 3\n"));
  const auto model = build_timeline_model(run, nullptr);
  EXPECT_FALSE(model->measured->has_critical_path);
  EXPECT_THAT(model->notes.at(0), HasSubstr("does not have"));
  EXPECT_GT(model->measured->flows.count(), 0);
}

TEST_F(TimelineRuns, OthersTakeTheirPlace) {
  view.select_slice(find(OpKind::kAttend, 1, 5));
  view.set_time_range(4 * kStepPs, 7 * kStepPs);
  view.set_marks({{5 * kStepPs, "A"}});
  view.set_runs(ring_model({.pace = 1.1}));
  EXPECT_EQ(view.time_range(), std::pair(4 * kStepPs, 7 * kStepPs));
  ASSERT_TRUE(view.selected_slice().has_value());
  EXPECT_EQ(view.model()->slice(*view.selected_slice())->step, 5);
  EXPECT_EQ(view.marks().size(), 1U);
  view.zoom_to_fit();
  view.set_runs(ring_model({.steps = 20}));
  EXPECT_GE(view.time_range().second, view.model()->end_ps);  // Fitted stays fitted.
}

TEST_F(TimelineRuns, AnOpThatBecameAnotherIsNotSelected) {
  view.select_slice(find(OpKind::kAttend, 1, 5, TimelineOrigin::kPredicted));
  const OpId op = view.model()->slice(*view.selected_slice())->op;
  RunData other = *view.model()->predicted->data;
  for (Slice& slice : other.timeline.slices) {
    if (slice.op == op) slice.step = 6;
  }
  const auto same = std::make_shared<const RunData>(*view.model()->predicted->data);
  view.set_runs(build_timeline_model(nullptr, same));
  EXPECT_TRUE(view.selected_slice().has_value());
  view.set_runs(build_timeline_model(nullptr, std::make_shared<const RunData>(std::move(other))));
  EXPECT_FALSE(view.selected_slice().has_value());
}

TEST_F(TimelineRuns, TheLegendWrapsBeforeAnyOfItIsLost) {
  const TimelineModel& model = *view.model();
  const QFont font = view.font();
  const auto lines = [&](int width) {
    return header_lines(&model, LayoutMode::kStacked, font, width);
  };
  EXPECT_EQ(lines(2000), 1);
  int before = 1;
  for (int width = 2000; width > 200; width -= 10) {
    EXPECT_GE(lines(width), before) << width;
    before = lines(width);
  }
  EXPECT_GT(before, 2);
  const auto entries = legend_of(model, LayoutMode::kStacked, colors_of(Theme::kLight));
  EXPECT_EQ(entries.back().label, "predicted");
  view.resize(420, 600);
  EXPECT_EQ(geometry().header.height(),
            geometry().header_line + (lines(420) - 1) * (view.fontMetrics().height() + kLegendGap));
  // The last entry is hatched in the colour of its text, below the first line.
  view.clearFocus();
  const QImage shown = view.grab().toImage().copy(geometry().header);
  const QRect below(0, shown.height() - geometry().header_line / 2, shown.width(),
                    geometry().header_line / 2);
  EXPECT_GT(count(shown.copy(below), colors_of(Theme::kLight).faint), 10);
}

TEST_F(TimelineRuns, MeasuredIsSolidAndPredictedHatched) {
  view.set_layout_mode(LayoutMode::kMeasured);
  const int64_t solid = count(picture(), op_color(OpKind::kAttend));
  view.set_layout_mode(LayoutMode::kPredicted);
  const int64_t strokes = count(picture(), op_color(OpKind::kAttend));
  EXPECT_GT(strokes, solid / 5);
  EXPECT_LT(strokes, solid * 7 / 10);
}

TEST_F(TimelineRuns, PicturesOfBothThemesAndRatios) {
  const QImage light = picture(1, Theme::kLight), dark = picture(1, Theme::kDark);
  EXPECT_NE(light, dark);
  EXPECT_GT(count(light, colors_of(Theme::kLight).background), 10'000);
  EXPECT_GT(count(dark, colors_of(Theme::kDark).background), 10'000);
  const int64_t one = count(light, op_color(OpKind::kAttend));
  const int64_t two = count(picture(2, Theme::kLight), op_color(OpKind::kAttend));
  EXPECT_NEAR(static_cast<double>(two) / static_cast<double>(one), 4, 0.5);
  EXPECT_FALSE(picture(1.5, Theme::kLight).isNull());
}

TEST_F(TimelineRuns, ThePictureIsWhatTheViewShows) {
  view.clearFocus();
  QImage image(view.size(), QImage::Format_RGB32);
  QPainter painter(&image);
  view.render_to(painter, view.size(), {});
  painter.end();
  EXPECT_EQ(view.grab().toImage().convertToFormat(QImage::Format_RGB32), image);
}

TEST_F(TimelineRuns, RowsWrittenDirectlyAreTheSame) {
  view.repaint();
  ASSERT_NE(view.backingStore(), nullptr);
  const auto* const shown = dynamic_cast<QImage*>(view.backingStore()->paintDevice());
  if (shown == nullptr) GTEST_SKIP() << "the platform draws elsewhere";
  EXPECT_EQ(view.grab().toImage().convertToFormat(QImage::Format_RGB32),
            shown->convertToFormat(QImage::Format_RGB32));
}

TEST_F(TimelineRuns, ShapesForSvgAndPdf) {
  QByteArray svg;
  QBuffer svg_buffer(&svg);
  QSvgGenerator generator;
  generator.setOutputDevice(&svg_buffer);
  generator.setSize(QSize(900, 500));
  RenderOptions options;
  options.is_vector = true;
  {
    QPainter painter(&generator);
    view.render_to(painter, QSize(900, 500), options);
  }
  EXPECT_TRUE(svg.contains("#0072b2"));
  EXPECT_TRUE(svg.contains("rank 1"));
  EXPECT_FALSE(svg.contains("<image x=\"0\" y=\"0\" width=\"900\""));
  QByteArray pdf;
  QBuffer pdf_buffer(&pdf);
  pdf_buffer.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&pdf_buffer);
    writer.setResolution(96);
    QPainter painter(&writer);
    view.render_to(painter, QSize(700, 500), options);
  }
  EXPECT_TRUE(pdf.startsWith("%PDF"));
  EXPECT_GT(pdf.size(), 5000);
}

TEST_F(TimelineRuns, CsvHoldsTheSlicesInSight) {
  view.set_layout_mode(LayoutMode::kMeasured);
  view.set_time_range(2 * kStepPs, 4 * kStepPs);
  const std::string csv = view.visible_csv();
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 3 * 3 * 2);
  EXPECT_THAT(csv, HasSubstr("measured,0,8,attend"));
}

TEST_F(TimelineRuns, ReadersOfTheScreenHearWhatIsSelected) {
  QAccessibleInterface* const face = QAccessible::queryAccessibleInterface(&view);
  ASSERT_NE(face, nullptr);
  EXPECT_EQ(face->text(QAccessible::Name), "Timeline");
  view.select_slice(find(OpKind::kReceive, 2, 1));
  EXPECT_TRUE(face->text(QAccessible::Description).contains("receive from 1"));
  EXPECT_TRUE(face->text(QAccessible::Description).contains("rank 2"));
  for (const QWidget* child : view.findChildren<QLineEdit*>()) {
    EXPECT_FALSE(child->accessibleName().isEmpty());
  }
  for (const QScrollBar* bar : view.findChildren<QScrollBar*>()) {
    EXPECT_FALSE(bar->accessibleName().isEmpty());
  }
}

/// Contrast of two colours (WCAG 2), with its own arithmetic.
double contrast(const QColor& a, const QColor& b) {
  const auto light = [](const QColor& c) {
    const auto linear = [](double v) {
      return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(c.redF()) + 0.7152 * linear(c.greenF()) + 0.0722 * linear(c.blueF());
  };
  const double high = std::max(light(a), light(b)), low = std::min(light(a), light(b));
  return (high + 0.05) / (low + 0.05);
}

TEST(ThemeColors, TextCanBeRead) {
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    const ThemeColors colors = colors_of(theme);
    for (const QColor& ground : {colors.background, colors.band, colors.panel}) {
      EXPECT_GE(contrast(colors.text, ground), 7);
      EXPECT_GE(contrast(colors.faint, ground), 4.5);
      EXPECT_GE(contrast(colors.accent, ground), 3);
      EXPECT_GE(contrast(op_color(OpKind::kAttend), ground), 3);
    }
    for (int kind = 0; kind < kOpKinds; ++kind) {
      const QColor color = op_color(static_cast<OpKind>(kind));
      EXPECT_GE(contrast(readable_on(color), color), 4.5) << kind;
    }
  }
}

}  // namespace
}  // namespace ring::gui
