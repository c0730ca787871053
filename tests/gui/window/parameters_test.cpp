#include <gmock/gmock.h>

#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QSlider>

#include "core/choices.h"
#include "core/formats/model_library.h"
#include "core/topology_shapes.h"
#include "gui/docks/choice_box.h"
#include "gui/docks/parameter_table.h"
#include "gui/docks/slider_box.h"
#include "tests/gui/window/window_testing.h"

namespace ring::gui {
namespace {

using testing::HasSubstr;

class Parameters : public WindowTest {};

TEST(ParameterTable, EveryParameterReadsWhatItWrites) {
  for (const NumberParameter& parameter : number_parameters()) {
    Scenario scenario = small_scenario();
    if (parameter.id == "slow_rank") number_parameter("slow_factor").set(scenario, 2);
    const std::vector<double> stops = parameter.stops(scenario);
    ASSERT_GE(stops.size(), 2U) << parameter.id;
    EXPECT_TRUE(std::is_sorted(stops.begin(), stops.end())) << parameter.id;
    EXPECT_TRUE(std::adjacent_find(stops.begin(), stops.end()) == stops.end()) << parameter.id;
    for (const double stop : stops) {
      Scenario changed = scenario;
      parameter.set(changed, stop);
      EXPECT_DOUBLE_EQ(parameter.get(changed), stop) << parameter.id;
      EXPECT_DOUBLE_EQ(parameter.parse(parameter.format(stop)), stop) << parameter.id;
    }
  }
}

TEST(ParameterTable, EveryParameterChangesTheScenario) {
  for (const NumberParameter& parameter : number_parameters()) {
    Scenario scenario = small_scenario();
    if (parameter.id == "slow_rank") number_parameter("slow_factor").set(scenario, 2);
    Scenario changed = scenario;
    const std::vector<double> stops = parameter.stops(scenario);
    parameter.set(changed, parameter.get(changed) == stops.back() ? stops.front() : stops.back());
    EXPECT_FALSE(is_same(scenario, changed)) << parameter.id;
  }
}

TEST(SliderBox, DragTellsItsBeginAndEnd) {
  SliderBox box({QStringLiteral("Size"),
                 QStringLiteral("tokens"),
                 {},
                 {},
                 [](const QString& text) { return text.toDouble(); },
                 [](double value) { return QString::number(value); }});
  box.set_stops({1, 2, 4, 8, 16});
  box.set_value(4);
  box.resize(300, 60);
  box.show();
  const QSignalSpy began(&box, &SliderBox::drag_began), ended(&box, &SliderBox::drag_ended);
  const QSignalSpy edited(&box, &SliderBox::value_edited);
  QSlider& slider = *box.slider();
  const QPoint middle(slider.width() / 2, slider.height() / 2);
  QTest::mousePress(&slider, Qt::LeftButton, {}, middle);
  QTest::mouseMove(&slider, middle + QPoint(slider.width() / 4, 0));
  QTest::mouseMove(&slider, middle + QPoint(slider.width() / 2, 0));
  QTest::mouseRelease(&slider, Qt::LeftButton, {}, middle + QPoint(slider.width() / 2, 0));
  EXPECT_EQ(began.count(), 1);
  EXPECT_EQ(ended.count(), 1);
  EXPECT_GE(edited.count(), 1);
  EXPECT_EQ(box.value(), 16);
}

TEST(SliderBox, TakesValuesBetweenTheStops) {
  SliderBox box({QStringLiteral("Size"),
                 {},
                 {},
                 {},
                 [](const QString& text) {
                   return static_cast<double>(parse_count(text.toStdString(), "size"));
                 },
                 [](double value) { return QString::number(value); }});
  box.set_stops({1, 2, 4, 8});
  box.set_value(4);
  const QSignalSpy edited(&box, &SliderBox::value_edited);
  const auto type = [&box](const char* text) {
    box.box()->selectAll();
    QTest::keyClicks(box.box(), QString::fromUtf8(text));
    QTest::keyClick(box.box(), Qt::Key_Return);
  };
  type("5");
  EXPECT_EQ(box.value(), 5);
  EXPECT_EQ(edited.count(), 1);
  type("1Ki");
  EXPECT_EQ(box.value(), 1024);
  type("many");
  EXPECT_EQ(box.value(), 1024);
  EXPECT_TRUE(box.box()->property("fault").toBool());
  EXPECT_THAT(box.box()->toolTip().toStdString(), HasSubstr("many"));
  type("3");
  EXPECT_FALSE(box.box()->property("fault").toBool());
}

TEST_F(Parameters, DragOfASliderIsOneUndoStep) {
  MainWindow window(small_scenario());
  window.show();
  ASSERT_TRUE(eventually([&] { return !window.workspace().is_busy(); }));
  QSlider& slider = *window.parameters().number("block").slider();
  const Tokens before = window.workspace().scenario().tuning.block_tokens;
  slider.setSliderDown(true);
  for (int i = slider.minimum(); i <= slider.maximum(); ++i) {
    slider.setSliderPosition(i);
    if (i % 4 == 0) QTest::qWait(2);
  }
  slider.setSliderDown(false);
  EXPECT_EQ(window.workspace().history().depth(), 1U);
  EXPECT_NE(window.workspace().scenario().tuning.block_tokens, before);
  ASSERT_TRUE(eventually([&] { return !window.workspace().is_busy(); }));
  EXPECT_EQ(window.workspace().study()->plan->scenario.tuning.block_tokens,
            window.workspace().scenario().tuning.block_tokens);
  window.actions().action("undo")->trigger();
  EXPECT_EQ(window.workspace().scenario().tuning.block_tokens, before);
  EXPECT_EQ(window.parameters().number("block").value(), static_cast<double>(before));
}

TEST_F(Parameters, KeysOnASliderAreStepsToo) {
  MainWindow window(small_scenario());
  window.show();
  QSlider& slider = *window.parameters().number("depth").slider();
  slider.setFocus();
  QTest::keyClick(&slider, Qt::Key_Right);
  QTest::keyClick(&slider, Qt::Key_Right);
  EXPECT_EQ(window.workspace().scenario().tuning.pipeline_depth, 4);
  EXPECT_EQ(window.workspace().history().depth(), 2U);
}

TEST_F(Parameters, ListsOfferWhatCoreOffers) {
  MainWindow window(small_scenario());
  const ParametersDock& dock = window.parameters();
  EXPECT_EQ(dock.choice("strategy").kinds()->count(),
            static_cast<int>(strategy_forms(window.workspace().scenario().tuning.ranks).size()));
  EXPECT_EQ(dock.choice("mask").kinds()->count(), static_cast<int>(mask_forms(2048).size()));
  EXPECT_EQ(dock.choice("partition").kinds()->count(),
            static_cast<int>(partition_forms(2048, 4).size()));
  EXPECT_EQ(dock.choice("machine").kinds()->count(), static_cast<int>(machine_offers().size()));
  // Custom heads before, a file behind.
  EXPECT_EQ(dock.list("model").count(), static_cast<int>(shipped_models().size()) + 2);
}

TEST_F(Parameters, ListsOfTypesAreThoseOfCore) {
  MainWindow window(small_scenario());
  const QComboBox& dtypes = window.parameters().list("dtype");
  const QComboBox& passes = window.parameters().list("pass");
  ASSERT_EQ(dtypes.count(), static_cast<int>(all_dtypes().size()));
  ASSERT_EQ(passes.count(), static_cast<int>(all_passes().size()));
  for (int i = 0; i < dtypes.count(); ++i) {
    EXPECT_EQ(parse_dtype(dtypes.itemText(i).toStdString()), all_dtypes()[static_cast<size_t>(i)]);
  }
  for (int i = 0; i < passes.count(); ++i) {
    EXPECT_EQ(parse_pass(passes.itemText(i).toStdString()), all_passes()[static_cast<size_t>(i)]);
  }
}

TEST_F(Parameters, EveryChoiceCanBeTaken) {
  MainWindow window(small_scenario());
  window.show();
  for (const char* id : {"mask", "partition", "strategy"}) {
    QComboBox& kinds = *window.parameters().choice(id).kinds();
    for (int i = 0; i < kinds.count(); ++i) {
      kinds.setCurrentIndex(i);
      Q_EMIT kinds.activated(i);
      ASSERT_TRUE(eventually([&] { return !window.workspace().is_busy(); }));
      EXPECT_EQ(window.workspace().refusal().toStdString(), "") << id << " " << i;
    }
    while (window.workspace().history().can_undo()) window.workspace().undo();
  }
}

TEST_F(Parameters, ModelBringsItsHeads) {
  MainWindow window(small_scenario());
  QComboBox& models = window.parameters().list("model");
  models.setCurrentIndex(models.findText(QStringLiteral("llama-3-70b")));
  Q_EMIT models.activated(models.currentIndex());
  EXPECT_EQ(window.workspace().scenario().problem.heads, 64);
  EXPECT_EQ(window.workspace().scenario().problem.seq_len(), 2048);
  EXPECT_EQ(window.workspace().scenario().model, "llama-3-70b");
  window.parameters().number("heads").value_edited(32);
  EXPECT_EQ(window.workspace().scenario().model, "");
  EXPECT_EQ(models.currentIndex(), 0);
}

TEST_F(Parameters, WhatCannotBeSimulatedSaysWhy) {
  MainWindow window(small_scenario());
  ASSERT_TRUE(eventually([&] { return !window.workspace().is_busy(); }));
  window.workspace().edit([](Scenario& s) { s.tuning.pipeline_depth = 1; }, "depth");
  ASSERT_TRUE(eventually([&] { return !window.workspace().is_busy(); }));
  EXPECT_THAT(window.workspace().refusal().toStdString(), HasSubstr("r0"));
  EXPECT_THAT(window.answers().text().toStdString(), HasSubstr("no prediction"));
  window.workspace().undo();
  ASSERT_TRUE(eventually([&] { return !window.workspace().is_busy(); }));
  EXPECT_EQ(window.workspace().refusal().toStdString(), "");
}

TEST_F(Parameters, EveryFieldIsReachedByKeysAndHasAName) {
  MainWindow window(small_scenario());
  window.show();
  for (const QWidget* widget : window.findChildren<QWidget*>()) {
    const bool is_field = qobject_cast<const QSlider*>(widget) != nullptr ||
                          qobject_cast<const QComboBox*>(widget) != nullptr ||
                          qobject_cast<const QLineEdit*>(widget) != nullptr;
    if (!is_field || qobject_cast<const QComboBox*>(widget->parent()) != nullptr) continue;
    EXPECT_NE(widget->focusPolicy() & Qt::TabFocus, 0) << widget->objectName().toStdString();
    EXPECT_FALSE(widget->accessibleName().isEmpty())
        << widget->metaObject()->className() << " " << widget->objectName().toStdString();
  }
}

}  // namespace
}  // namespace ring::gui
