#include "gui/session/scenario_history.h"

#include <gtest/gtest.h>

namespace ring::gui {
namespace {

Scenario with_block(Tokens block) {
  Scenario scenario;
  scenario.tuning.block_tokens = block;
  return scenario;
}

TEST(ScenarioHistory, StepsBackAndForth) {
  ScenarioHistory history(with_block(1));
  EXPECT_FALSE(history.can_undo());
  EXPECT_TRUE(history.set(with_block(2), "block"));
  EXPECT_TRUE(history.set(with_block(3), "more"));
  EXPECT_EQ(history.undo_text(), "more");
  history.undo();
  EXPECT_EQ(history.current().tuning.block_tokens, 2);
  EXPECT_EQ(history.undo_text(), "block");
  EXPECT_EQ(history.redo_text(), "more");
  history.redo();
  EXPECT_EQ(history.current().tuning.block_tokens, 3);
  EXPECT_FALSE(history.can_redo());
}

TEST(ScenarioHistory, EqualScenarioIsNoStep) {
  ScenarioHistory history(with_block(1));
  EXPECT_FALSE(history.set(with_block(1), "same"));
  EXPECT_FALSE(history.can_undo());
}

TEST(ScenarioHistory, ChangeAfterUndoDropsWhatWasUndone) {
  ScenarioHistory history(with_block(1));
  history.set(with_block(2), "a");
  history.undo();
  history.set(with_block(5), "b");
  EXPECT_FALSE(history.can_redo());
  history.undo();
  EXPECT_EQ(history.current().tuning.block_tokens, 1);
}

TEST(ScenarioHistory, DragIsOneStep) {
  ScenarioHistory history(with_block(1));
  history.begin_drag();
  for (Tokens block = 2; block < 50; ++block) history.set(with_block(block), "block");
  history.end_drag();
  EXPECT_EQ(history.depth(), 1U);
  history.undo();
  EXPECT_EQ(history.current().tuning.block_tokens, 1);
  history.redo();
  EXPECT_EQ(history.current().tuning.block_tokens, 49);
}

TEST(ScenarioHistory, DragBackToItsStartIsNone) {
  ScenarioHistory history(with_block(1));
  history.begin_drag();
  history.set(with_block(2), "block");
  history.set(with_block(1), "block");
  history.end_drag();
  EXPECT_FALSE(history.can_undo());
  EXPECT_FALSE(history.can_redo());
}

TEST(ScenarioHistory, TwoDragsAreTwoSteps) {
  ScenarioHistory history(with_block(1));
  for (const Tokens block : {5, 9}) {
    history.begin_drag();
    history.set(with_block(block), "block");
    history.set(with_block(block + 1), "block");
    history.end_drag();
  }
  EXPECT_EQ(history.depth(), 2U);
}

}  // namespace
}  // namespace ring::gui
