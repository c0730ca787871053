#include "gui/session/scenario_history.h"

#include "core/formats/scenario_toml.h"

namespace ring::gui {

namespace {

constexpr size_t kMostSteps = 1000;

}  // namespace

void clear_what_ifs(Scenario& scenario) {
  scenario.what_if = {};
  scenario.noise_seed.reset();
  scenario.slow_ranks.clear();
  scenario.slow_links.clear();
  scenario.broken_links.clear();
  scenario.late_starts.clear();
}

bool is_same(const Scenario& a, const Scenario& b) {
  return a.model == b.model && scenario_toml(a) == scenario_toml(b);
}

ScenarioHistory::ScenarioHistory(Scenario first) { steps_.push_back({std::move(first), {}}); }

bool ScenarioHistory::set(Scenario scenario, std::string what) {
  if (is_same(scenario, current())) return false;
  steps_.resize(at_ + 1);
  if (is_dragging_ && has_drag_step_) {
    steps_[at_].scenario = std::move(scenario);
    return true;
  }
  steps_.push_back({std::move(scenario), std::move(what)});
  if (steps_.size() > kMostSteps) steps_.erase(steps_.begin());
  at_ = steps_.size() - 1;
  has_drag_step_ = is_dragging_;
  return true;
}

void ScenarioHistory::begin_drag() {
  is_dragging_ = true;
  has_drag_step_ = false;
}

void ScenarioHistory::end_drag() {
  const bool is_back = has_drag_step_ && is_same(steps_[at_].scenario, steps_[at_ - 1].scenario);
  if (is_back) {
    steps_.pop_back();
    --at_;
  }
  is_dragging_ = has_drag_step_ = false;
}

void ScenarioHistory::undo() {
  if (can_undo()) --at_;
  has_drag_step_ = false;
}

void ScenarioHistory::redo() {
  if (can_redo()) ++at_;
  has_drag_step_ = false;
}

}  // namespace ring::gui
