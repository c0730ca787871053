// The questions that people ask first: answered in the window, and shown where one asks.
#include <gmock/gmock.h>

#include <QLabel>
#include <QTabWidget>

#include "tests/gui/window/window_testing.h"

namespace ring::gui {
namespace {

using testing::HasSubstr;

class Questions : public WindowTest {
 protected:
  static void follow(MainWindow& window, Question question) {
    QLabel& label = window.answers().questions().label(question);
    ASSERT_TRUE(label.text().contains(QStringLiteral("href='show'")));
    Q_EMIT label.linkActivated(QStringLiteral("show"));
  }
};

TEST_F(Questions, AreAllAnsweredWithoutAsking) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  ASSERT_TRUE(window.workspace().answers());
  for (const Answer& answer : *window.workspace().answers()) {
    const QString shown = window.answers().questions().label(answer.question).text();
    EXPECT_TRUE(shown.contains(QString::fromStdString(answer.text).toHtmlEscaped()))
        << shown.toStdString();
    EXPECT_THAT(window.answers().text().toStdString(), HasSubstr(shown.toStdString()));
  }
}

TEST_F(Questions, LinksCanBeReadInBothThemes) {
  MainWindow window(small_scenario());
  window.resize(1300, 900);
  window.show();
  wait_until_settled(window);
  QLabel& label = window.answers().questions().label(Question::kHiding);
  for (const Theme theme : {Theme::kLight, Theme::kDark, Theme::kLight}) {
    window.set_theme(theme);
    QTest::qWait(1);
    const QImage picture = label.grab().toImage();
    const QRgb wanted = colors_of(theme).accent.rgb();
    int64_t found = 0;
    for (int y = 0; y < picture.height(); ++y) {
      for (int x = 0; x < picture.width(); ++x) found += picture.pixel(x, y) == wanted ? 1 : 0;
    }
    EXPECT_GT(found, 20);  // At least the line below the link.
  }
}

TEST_F(Questions, TheSelectionIsInSight) {
  MainWindow window(small_scenario());
  window.resize(1300, 700);
  window.show();
  wait_until_settled(window);
  window.timeline().select_slice(SliceRef{TimelineOrigin::kPredicted, 0});
  for (const QLabel* label : window.answers().findChildren<QLabel*>()) {
    if (label->accessibleName() != QStringLiteral("Selection")) continue;
    EXPECT_TRUE(eventually([&] { return label->text().contains(QStringLiteral("rank 0")); }))
        << label->text().toStdString();
    // All of it: no line is cut.
    EXPECT_TRUE(eventually([&] { return label->visibleRegion().boundingRect() == label->rect(); }));
    return;
  }
  ADD_FAILURE() << "there is no selection";
}

TEST_F(Questions, OldAnswersGoWithTheirScenario) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  const QString before = window.answers().questions().text();
  window.workspace().edit([](Scenario& s) { s.tuning.pipeline_depth = 1; }, "depth");
  ASSERT_TRUE(eventually([&] { return !window.workspace().is_busy(); }));
  EXPECT_NE(window.answers().questions().text(), before);
  EXPECT_FALSE(window.answers().questions().text().contains(QStringLiteral("href")));
}

TEST_F(Questions, BlocksAndDepthsLeadToTheMap) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  follow(window, Question::kHiding);
  EXPECT_EQ(window.tabs().currentWidget(), &window.sweeps());
  EXPECT_EQ(window.sweeps().kind(), SweepKind::kBlockDepth);
  EXPECT_EQ(window.sweeps().plot().value(), CandidateValue::kExposedShare);
  follow(window, Question::kDepth);
  EXPECT_EQ(window.sweeps().plot().value(), CandidateValue::kTime);
  wait_until_settled(window);
  EXPECT_FALSE(window.sweeps().plot().results().points.empty());
}

TEST_F(Questions, TheLateRankIsSelected) {
  Scenario scenario = small_scenario();
  scenario.slow_ranks = {{2, 3.0}};
  MainWindow window(scenario);
  window.show();
  wait_until_settled(window);
  window.tabs().setCurrentIndex(2);
  follow(window, Question::kLateRank);
  EXPECT_EQ(window.tabs().currentWidget(), &window.timeline());
  const auto selected = window.timeline().selected_slice();
  ASSERT_TRUE(selected);
  EXPECT_EQ(window.workspace().model()->slice(*selected)->op.rank, 2);
}

TEST_F(Questions, TwiceTheLinkIsTriedAndTakenBack) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  follow(window, Question::kLink);
  EXPECT_EQ(window.workspace().scenario().what_if.bandwidth, 2);
  EXPECT_EQ(window.workspace().history().depth(), 1U);
  window.workspace().undo();
  EXPECT_EQ(window.workspace().scenario().what_if.bandwidth, 1);
}

TEST_F(Questions, AProfileWithoutNoiseSaysSoInPlainSight) {
  MainWindow window(small_scenario());
  window.show();
  wait_until_settled(window);
  EXPECT_THAT(window.answers().text().toStdString(),
              HasSubstr("no interval: this profile is not calibrated"));
  window.workspace().edit([](Scenario& s) { s.what_if.jitter = 0.1; }, "jitter");
  wait_until_settled(window);
  EXPECT_THAT(window.answers().text().toStdString(), HasSubstr("of runs"));
}

}  // namespace
}  // namespace ring::gui
