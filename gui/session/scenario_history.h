// ScenarioHistory: the scenario being edited, and the steps that undo and redo take.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/scenario.h"

namespace ring::gui {

/// A drag of a slider is one step, however many values it passes through.
class ScenarioHistory {
 public:
  explicit ScenarioHistory(Scenario first);

  const Scenario& current() const { return steps_[at_].scenario; }

  /// `what` names the change for the menu: "block size". A scenario equal to the current one makes
  /// no step. Returns whether anything changed.
  bool set(Scenario scenario, std::string what);
  /// Until `end_drag`, all calls of `set` together make one step.
  void begin_drag();
  /// A drag that ended where it began leaves no step.
  void end_drag();

  bool can_undo() const { return at_ > 0; }
  bool can_redo() const { return at_ + 1 < steps_.size(); }
  void undo();
  void redo();
  /// What undo and redo would change; empty when they can do nothing.
  std::string undo_text() const { return can_undo() ? steps_[at_].what : std::string(); }
  std::string redo_text() const { return can_redo() ? steps_[at_ + 1].what : std::string(); }
  /// Number of steps that can be undone.
  size_t depth() const { return at_; }

 private:
  struct Step {
    Scenario scenario;
    std::string what;  ///< What led here from the step before.
  };

  std::vector<Step> steps_;
  size_t at_ = 0;
  bool is_dragging_ = false;
  bool has_drag_step_ = false;
};

/// The machine as it is, undisturbed and without noise.
void clear_what_ifs(Scenario& scenario);

/// All that decides what is simulated is the same.
bool is_same(const Scenario& a, const Scenario& b);

}  // namespace ring::gui
