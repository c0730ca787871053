#include <gmock/gmock.h>

#include <QLabel>
#include <QLineEdit>
#include <QScrollBar>
#include <QSignalSpy>
#include <set>

#include "core/formats/file_io.h"
#include "tests/gui/timeline/timeline_fixture.h"

namespace ring::gui {
namespace {

using testing::ElementsAre;

class TimelineKeys : public TimelineFixture {};
class TimelineMouse : public TimelineFixture {};

TEST_F(TimelineKeys, ZoomAtThePointer) {
  const QPoint at(geometry().plot.left() + geometry().plot.width() / 4,
                  geometry().plot.center().y());
  mouse(QEvent::MouseMove, at, Qt::NoButton);
  const auto [from, to] = view.time_range();
  const double under = static_cast<double>(from) + 0.25 * span();
  const double before = span();
  key(Qt::Key_W);
  EXPECT_NEAR(span(), before / 1.25, 2);
  const double share = (under - static_cast<double>(view.time_range().first)) / span();
  EXPECT_NEAR(share, 0.25, 0.005);  // The same time is still under the pointer, to a few pixels.
  key(Qt::Key_S);
  EXPECT_EQ(view.time_range(), std::pair(from, to));
}

TEST_F(TimelineKeys, PanAndFit) {
  for (int i = 0; i < 6; ++i) key(Qt::Key_W);
  const auto zoomed = view.time_range();
  key(Qt::Key_D);
  EXPECT_GT(view.time_range().first, zoomed.first);
  EXPECT_NEAR(static_cast<double>(view.time_range().first - zoomed.first), span() / 10, 2);
  key(Qt::Key_A);
  EXPECT_NEAR(static_cast<double>(view.time_range().first), static_cast<double>(zoomed.first), 2);
  key(Qt::Key_Home);
  EXPECT_EQ(view.time_range().first, 0);
  EXPECT_GE(view.time_range().second, view.model()->end_ps);
}

TEST_F(TimelineKeys, BackspaceGoesBackGestureByGesture) {
  const auto whole = view.time_range();
  key(Qt::Key_W);
  key(Qt::Key_W);
  const auto zoomed = view.time_range();
  key(Qt::Key_D);
  key(Qt::Key_D);
  key(Qt::Key_Backspace);
  EXPECT_EQ(view.time_range(), zoomed);
  key(Qt::Key_Backspace);
  EXPECT_EQ(view.time_range(), whole);
  key(Qt::Key_Backspace);
  EXPECT_EQ(view.time_range(), whole);
}

TEST_F(TimelineKeys, FCentresThenFits) {
  view.select_slice(find(OpKind::kAttend, 0, 7));
  view.set_time_range(5 * kStepPs, 9 * kStepPs);
  const double before = span();
  key(Qt::Key_F);
  EXPECT_EQ(span(), before);
  const auto [from, to] = view.time_range();
  EXPECT_EQ(from + (to - from) / 2, 7 * kStepPs + kStepPs * 40 / 100);
  key(Qt::Key_F);
  EXPECT_NEAR(span(), 0.8 * 1.2 * kStepPs, 4);
}

TEST_F(TimelineKeys, ZZoomsToTheRangeAndEscClears) {
  view.select_range(2 * kStepPs, 4 * kStepPs);
  EXPECT_FALSE(view.selection().is_empty);
  key(Qt::Key_Z);
  EXPECT_NEAR(span(), 2 * 1.2 * kStepPs, 4);
  view.select_slice(find(OpKind::kSend, 1, 1));
  view.search("attend");
  key(Qt::Key_Escape);
  EXPECT_TRUE(view.selection().is_empty);
  EXPECT_EQ(view.selected_slice(), std::nullopt);
  EXPECT_EQ(view.search_text(), "");
}

TEST_F(TimelineKeys, StepFromOpToOpInTheLane) {
  view.select_slice(find(OpKind::kReceive, 1, 4));
  type('.');
  EXPECT_EQ(view.selected_slice(), find(OpKind::kReceive, 1, 5));
  EXPECT_EQ(view.cursor_ps(), 5 * kStepPs + kStepPs / 10);
  key(Qt::Key_Right);
  EXPECT_EQ(view.selected_slice(), find(OpKind::kReceive, 1, 6));
  type(',');
  key(Qt::Key_Left);
  key(Qt::Key_Left);
  EXPECT_EQ(view.selected_slice(), find(OpKind::kReceive, 1, 3));
  for (int i = 0; i < 5; ++i) type(',');
  EXPECT_EQ(view.selected_slice(), find(OpKind::kReceive, 1, 0));
}

TEST_F(TimelineKeys, WithoutASelectionStepsStartAtTheFirstOpInSight) {
  view.set_time_range(3 * kStepPs, 6 * kStepPs);
  type('.');
  EXPECT_EQ(view.selected_slice(), find(OpKind::kAttend, 0, 3));
}

TEST_F(TimelineKeys, UpAndDownChangeTheRow) {
  view.select_slice(find(OpKind::kAttend, 0, 4));
  key(Qt::Key_Down);  // Stacked: the predicted line of the same lane.
  ASSERT_TRUE(view.selected_slice().has_value());
  EXPECT_EQ(view.selected_slice()->origin, TimelineOrigin::kPredicted);
  key(Qt::Key_Down);
  EXPECT_EQ(view.model()->slice(*view.selected_slice())->kind, OpKind::kSend);
  key(Qt::Key_Up);
  key(Qt::Key_Up);
  EXPECT_EQ(view.model()->slice(*view.selected_slice())->kind, OpKind::kAttend);
  key(Qt::Key_Up);
  EXPECT_EQ(view.model()->slice(*view.selected_slice())->op.rank, 0);
}

TEST_F(TimelineKeys, BracketsFollowMessages) {
  view.select_slice(find(OpKind::kSend, 2, 5));
  type(']');
  EXPECT_EQ(view.selected_slice(), find(OpKind::kReceive, 0, 5));
  type('[');
  EXPECT_EQ(view.selected_slice(), find(OpKind::kSend, 2, 5));
  type('[');  // Nothing led to it.
  EXPECT_EQ(view.selected_slice(), find(OpKind::kSend, 2, 5));
}

TEST_F(TimelineKeys, ShiftAndArrowsSelectARange) {
  view.select_slice(find(OpKind::kAttend, 1, 2));
  key(Qt::Key_Right, Qt::ShiftModifier);
  key(Qt::Key_Right, Qt::ShiftModifier);
  ASSERT_FALSE(view.selection().is_empty);
  EXPECT_EQ(view.selection().from_ps, 2 * kStepPs);
  EXPECT_EQ(view.selection().to_ps, 4 * kStepPs + kStepPs * 8 / 10);
  EXPECT_THAT(view.selection().ranks, ElementsAre(1));
  EXPECT_EQ(view.selection().measured->work.count, 3);
  key(Qt::Key_Left, Qt::ShiftModifier);
  EXPECT_EQ(view.selection().measured->work.count, 2);
}

TEST_F(TimelineKeys, MSetsAndRemovesAMark) {
  QSignalSpy changed(&view, &TimelineView::marks_changed);
  view.set_cursor_ps(3 * kStepPs);
  type('m');
  ASSERT_EQ(view.marks().size(), 1U);
  EXPECT_EQ(view.marks()[0].at_ps, 3 * kStepPs);
  EXPECT_EQ(view.marks()[0].label, "A");
  view.set_cursor_ps(5 * kStepPs);
  type('m');
  EXPECT_EQ(view.marks()[1].label, "B");
  view.set_cursor_ps(3 * kStepPs + 10);
  type('m');
  ASSERT_EQ(view.marks().size(), 1U);
  EXPECT_EQ(view.marks()[0].label, "B");
  EXPECT_EQ(changed.count(), 3);
}

TEST_F(TimelineKeys, DigitsChooseTheRuns) {
  QSignalSpy changed(&view, &TimelineView::layout_mode_changed);
  const auto modes = {
      std::pair{Qt::Key_1, LayoutMode::kMeasured}, std::pair{Qt::Key_2, LayoutMode::kPredicted},
      std::pair{Qt::Key_3, LayoutMode::kOverlaid}, std::pair{Qt::Key_4, LayoutMode::kStacked}};
  for (const auto& [digit, mode] : modes) {
    key(digit);
    EXPECT_EQ(view.layout_mode(), mode);
  }
  EXPECT_EQ(changed.count(), 4);
}

TEST_F(TimelineKeys, SlashSearchesAndReturnWalksTheFinds) {
  auto* const line = view.findChild<QLineEdit*>();
  ASSERT_NE(line, nullptr);
  EXPECT_FALSE(line->isVisible());
  type('/');
  EXPECT_TRUE(line->isVisible());
  EXPECT_TRUE(line->hasFocus());
  QSignalSpy searched(&view, &TimelineView::search_changed);
  QTest::keyClicks(line, "send rank 1");
  EXPECT_EQ(searched.last().at(1).toLongLong(), 20);  // Measured and predicted.
  QTest::keyClick(line, Qt::Key_Return);
  ASSERT_TRUE(view.selected_slice().has_value());
  const Slice first = *view.model()->slice(*view.selected_slice());
  EXPECT_EQ(first.kind, OpKind::kSend);
  EXPECT_EQ(first.op.rank, 1);
  EXPECT_EQ(first.step, 0);
  QTest::keyClick(line, Qt::Key_Return, Qt::ShiftModifier);  // Round to the last.
  EXPECT_EQ(view.model()->slice(*view.selected_slice())->step, 9);
  QTest::keyClick(line, Qt::Key_Escape);
  EXPECT_FALSE(line->isVisible());
  EXPECT_TRUE(view.hasFocus());
  EXPECT_EQ(view.search_text(), "");
}

TEST_F(TimelineKeys, AWrongSearchSaysWhy) {
  EXPECT_EQ(view.search("nonsense"), 0);
  bool is_said = false;
  for (const QLabel* label : view.findChildren<QLabel*>()) {
    is_said |= label->toolTip().contains("means nothing");
  }
  EXPECT_TRUE(is_said);
  EXPECT_EQ(view.search("attend"), 60);
}

TEST_F(TimelineKeys, ReturnAsksAboutTheOp) {
  QSignalSpy asked(&view, &TimelineView::activated);
  key(Qt::Key_Return);
  EXPECT_EQ(asked.count(), 0);
  view.select_slice(find(OpKind::kAttend, 0, 1));
  key(Qt::Key_Return);
  EXPECT_EQ(asked.count(), 1);
}

TEST_F(TimelineKeys, EveryActionHasItsOwnKeys) {
  std::set<QString> keys;
  std::set<TimelineAction> actions;
  for (const TimelineActionInfo& info : timeline_actions()) {
    EXPECT_TRUE(actions.insert(info.action).second) << info.name;
    EXPECT_STRNE(info.name, "");
    for (const QString& one : QString(info.keys).split("; ")) {
      EXPECT_FALSE(one.isEmpty()) << info.name;
      EXPECT_TRUE(keys.insert(one).second) << one.toStdString();
    }
    view.trigger(info.action);
    QApplication::processEvents();
  }
  EXPECT_EQ(actions.size(), static_cast<size_t>(TimelineAction::kActivate) + 1);
}

TEST(TimelinePage, ListsAllKeysAndGestures) {
  const std::string page = read_file(std::string(RING_SOURCE_DIR) + "/docs/timeline.md");
  for (const TimelineActionInfo& info : timeline_actions()) {
    const std::string mouse = *info.gesture == 0 ? "" : std::string(" ") + info.gesture;
    const std::string line =
        std::string("| ") + info.name + " | " + info.keys + " |" + mouse + " |";
    EXPECT_NE(page.find(line), std::string::npos) << line;
  }
}

TEST_F(TimelineMouse, AClickSelectsTheOpUnderIt) {
  QSignalSpy selected(&view, &TimelineView::slice_selected);
  QSignalSpy moved(&view, &TimelineView::cursor_moved);
  const SliceRef attend = find(OpKind::kAttend, 1, 6);
  QTest::mouseClick(&view, Qt::LeftButton, Qt::NoModifier, place_of(attend));
  EXPECT_EQ(view.selected_slice(), attend);
  EXPECT_EQ(selected.count(), 1);
  EXPECT_EQ(moved.count(), 1);
  const SliceRef predicted = find(OpKind::kReceive, 0, 2, TimelineOrigin::kPredicted);
  QTest::mouseClick(&view, Qt::LeftButton, Qt::NoModifier, place_of(predicted));
  EXPECT_EQ(view.selected_slice(), predicted);
  // Into the idle time after an attend.
  const QPoint idle(static_cast<int>(x_of(6 * kStepPs + kStepPs * 92 / 100)), place_of(attend).y());
  QTest::mouseClick(&view, Qt::LeftButton, Qt::NoModifier, idle);
  EXPECT_EQ(view.selected_slice(), std::nullopt);
}

TEST_F(TimelineMouse, HoverNamesTheOp) {
  QSignalSpy hovered(&view, &TimelineView::hovered);
  const SliceRef send = find(OpKind::kSend, 0, 3);
  mouse(QEvent::MouseMove, place_of(send), Qt::NoButton);
  EXPECT_EQ(view.hovered_slice(), send);
  EXPECT_TRUE(view.describe(send).contains("send to 1"));
  EXPECT_TRUE(view.describe(send).contains("waited"));
  QEvent leave(QEvent::Leave);
  QApplication::sendEvent(&view, &leave);
  EXPECT_EQ(view.hovered_slice(), std::nullopt);
  EXPECT_EQ(hovered.count(), 2);
}

TEST_F(TimelineMouse, ADragSelectsARangeOfTheRowsItCrosses) {
  QSignalSpy changed(&view, &TimelineView::selection_changed);
  const SliceRef first = find(OpKind::kAttend, 0, 2), last = find(OpKind::kAttend, 0, 4);
  drag(place_of(first), place_of(last));
  const TimelineSelection& selection = view.selection();
  ASSERT_FALSE(selection.is_empty);
  EXPECT_THAT(selection.ranks, ElementsAre(0));
  EXPECT_NEAR(static_cast<double>(selection.from_ps), 2.4 * kStepPs, span() / 500);
  EXPECT_NEAR(static_cast<double>(selection.to_ps), 4.4 * kStepPs, span() / 500);
  ASSERT_TRUE(selection.measured && selection.predicted);
  EXPECT_EQ(selection.measured->work.count, 3);
  EXPECT_EQ(selection.measured->work.p50_ps, kStepPs * 8 / 10);
  EXPECT_EQ(selection.measured->work.sum_ps, 3 * kStepPs * 8 / 10);
  EXPECT_EQ(selection.measured->kinds.size(), 1U);
  EXPECT_GE(changed.count(), 2);  // While it is dragged, and at its end.
}

TEST_F(TimelineMouse, ADragOverTwoRanksTakesAllLanesBetween) {
  drag(place_of(find(OpKind::kAttend, 0, 3)), place_of(find(OpKind::kAttend, 1, 3)) + QPoint(5, 0));
  EXPECT_THAT(view.selection().ranks, ElementsAre(0, 1));
  EXPECT_EQ(view.selection().measured->kinds.size(), 3U);
}

TEST_F(TimelineMouse, AShiftDragTakesAllRanks) {
  const QPoint at = place_of(find(OpKind::kAttend, 0, 3));
  drag(at, at + QPoint(60, 0), Qt::LeftButton, Qt::ShiftModifier);
  EXPECT_THAT(view.selection().ranks, ElementsAre(0, 1, 2));
}

TEST_F(TimelineMouse, ADragToTheLeftAndBeyondTheEdgeStaysInside) {
  drag(place_of(find(OpKind::kAttend, 0, 3)), QPointF(-50, 2000));
  EXPECT_EQ(view.selection().from_ps, view.time_range().first);
  EXPECT_EQ(view.selection().ranks.front(), 0);
}

TEST_F(TimelineMouse, WheelScrollsZoomsAndPans) {
  view.resize(1000, 220);
  QApplication::processEvents();
  const QPointF at = geometry().plot.center();
  EXPECT_EQ(view.scroll_y(), 0);
  wheel(at, -1);
  EXPECT_GT(view.scroll_y(), 0);
  wheel(at, 1);
  EXPECT_EQ(view.scroll_y(), 0);
  const double before = span();
  const double under = static_cast<double>(view.time_range().first) + 0.5 * span();
  wheel(at, 2, Qt::ControlModifier);
  EXPECT_NEAR(span(), before / 1.44, 4);
  EXPECT_NEAR(static_cast<double>(view.time_range().first) + 0.5 * span(), under, span() / 200);
  const Picoseconds from = view.time_range().first;
  wheel(at, -1, Qt::ShiftModifier);
  EXPECT_GT(view.time_range().first, from);
  wheel(at, 1, Qt::ShiftModifier);
  EXPECT_NEAR(static_cast<double>(view.time_range().first), static_cast<double>(from), 2);
}

TEST_F(TimelineMouse, TheMinimapMovesWhatIsShown) {
  view.set_time_range(0, kStepPs);
  const QRect map = geometry().minimap;
  QTest::mouseClick(&view, Qt::LeftButton, Qt::NoModifier,
                    QPoint(map.left() + map.width() / 2, map.center().y()));
  const auto [from, to] = view.time_range();
  EXPECT_EQ(to - from, kStepPs);
  EXPECT_NEAR(static_cast<double>(from + to) / 2, static_cast<double>(view.model()->end_ps) / 2,
              static_cast<double>(view.model()->end_ps) / 200);
}

TEST_F(TimelineMouse, TheRulerMovesTheCursor) {
  QSignalSpy moved(&view, &TimelineView::cursor_moved);
  const QRect ruler = geometry().ruler;
  drag(QPointF(x_of(2 * kStepPs), ruler.center().y()),
       QPointF(x_of(5 * kStepPs), ruler.center().y()));
  EXPECT_NEAR(static_cast<double>(view.cursor_ps()), 5.0 * kStepPs, span() / 500);
  EXPECT_GE(moved.count(), 2);
  EXPECT_TRUE(view.selection().is_empty);
}

TEST_F(TimelineMouse, TheMiddleButtonPans) {
  view.set_time_range(3 * kStepPs, 5 * kStepPs);
  const QPointF at = geometry().plot.center();
  drag(at, at - QPointF(100, 0), Qt::MiddleButton);
  const double moved = static_cast<double>(view.time_range().first) - 3.0 * kStepPs;
  EXPECT_NEAR(moved, 100.0 / geometry().plot.width() * 2 * kStepPs, kStepPs / 100.0);
}

TEST_F(TimelineMouse, ADoubleClickAsksAboutTheOp) {
  QSignalSpy asked(&view, &TimelineView::activated);
  QTest::mouseDClick(&view, Qt::LeftButton, Qt::NoModifier, place_of(find(OpKind::kAttend, 1, 1)));
  ASSERT_EQ(asked.count(), 1);
  EXPECT_EQ(view.selected_slice(), find(OpKind::kAttend, 1, 1));
}

}  // namespace
}  // namespace ring::gui
