// Helpers of the window's tests: a small scenario, a window that is settled, settings of its own.
#pragma once

#include <gtest/gtest.h>

#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include "core/strategy.h"
#include "gui/window/headless.h"
#include "gui/window/main_window.h"

namespace ring::gui {

/// Milliseconds; machines of tests may be slow.
inline constexpr int kPatienceMs = 60'000;

inline Scenario small_scenario() {
  Scenario scenario;
  scenario.name = "small";
  scenario.machine = "dgx-a100";
  scenario.problem.heads = scenario.problem.kv_heads = 4;
  scenario.problem.head_dim = scenario.problem.head_dim_v = 32;
  scenario.problem.dtype = DType::kBF16;
  scenario.problem.mask = Mask::causal(2048);
  scenario.tuning.ranks = 4;
  scenario.tuning.block_tokens = 128;
  return scenario;
}

/// Runs on the cores at hand within milliseconds.
inline Scenario runnable_scenario() {
  Scenario scenario = small_scenario();
  scenario.machine.clear();
  scenario.problem.dtype = DType::kF32;
  scenario.problem.mask = Mask::causal(512);
  return scenario;
}

/// A folder that also holds the settings, so that those of the user stay as they are.
class WindowTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(folder_.isValid());
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder_.path());
    // No profile of the user's: the stand-in is used, whatever was calibrated here.
    qputenv("XDG_CACHE_HOME", folder_.path().toUtf8());
  }
  QString path(const char* name) const { return folder_.filePath(QString::fromUtf8(name)); }

 private:
  QTemporaryDir folder_;
};

template <typename Condition>
testing::AssertionResult eventually(Condition condition) {
  if (QTest::qWaitFor(condition, kPatienceMs)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "did not come about";
}

}  // namespace ring::gui
