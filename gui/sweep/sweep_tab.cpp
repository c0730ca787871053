#include "gui/sweep/sweep_tab.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>

#include "core/choices.h"
#include "core/error.h"
#include "core/machine_scaling.h"
#include "core/wording.h"
#include "gui/session/workspace.h"

namespace ring::gui {

namespace {

int processors_of(const Machine& machine) { return static_cast<int>(machine.processors.size()); }

std::string caption_of(const Scenario& scenario) {
  return describe(scenario.problem) + "\n" + describe(scenario.tuning) + "; " +
         (scenario.machine.empty() ? "this machine" : scenario.machine);
}

/// Moves a scenario to a point of a sweep; what is not swept stays as it is.
void vary(Scenario& scenario, SweepKind kind, const Candidate& to) {
  switch (kind) {
    case SweepKind::kBlockDepth:
      scenario.tuning.block_tokens = to.tuning.block_tokens;
      scenario.tuning.pipeline_depth = to.tuning.pipeline_depth;
      return;
    case SweepKind::kSeqLen:
      scenario.problem = with_seq_len(scenario.problem, to.problem.seq_len());
      return;
    case SweepKind::kRingSize:
      scenario.tuning.ranks = to.tuning.ranks;
      return;
    case SweepKind::kStrategies:
      scenario.tuning.strategy = to.tuning.strategy;
      return;
  }
}

CandidateOptions options_for(SweepKind kind, const Scenario& scenario) {
  CandidateOptions options;
  options.simulation = simulation_options(scenario);
  options.simulation.noise_seed.reset();
  options.draws = kind == SweepKind::kBlockDepth ? 1 : 9;
  return options;
}

}  // namespace

std::vector<Candidate> sweep_candidates(SweepKind kind, const Scenario& scenario, int processors) {
  switch (kind) {
    case SweepKind::kBlockDepth:
      return block_depth_candidates(scenario.problem, scenario.tuning);
    case SweepKind::kSeqLen:
      return seq_len_candidates(scenario.problem, scenario.tuning);
    case SweepKind::kRingSize:
      // More ranks than processors would share them: another question.
      return ring_size_candidates(scenario.problem, scenario.tuning,
                                  std::max(processors, scenario.tuning.ranks));
    case SweepKind::kStrategies:
      return strategy_candidates(scenario.problem, scenario.tuning);
  }
  return {};
}

SweepTab::SweepTab(Workspace& workspace, QWidget* parent)
    : QWidget(parent),
      workspace_(workspace),
      kinds_(new QComboBox(this)),
      values_(new QComboBox(this)),
      run_(new QPushButton(tr("Sweep"), this)),
      cancel_(new QPushButton(tr("Cancel"), this)),
      progress_(new QProgressBar(this)),
      note_(new QLabel(this)),
      plot_(new SweepPlot(this)) {
  for (const SweepKind kind : kSweepKinds) kinds_->addItem(title(kind));
  for (const CandidateValue value : kCandidateValues) {
    values_->addItem(QString::fromStdString(std::string(name(value))));
  }
  auto* column = new QVBoxLayout(this);
  auto* row = new QHBoxLayout;
  const auto add = [&](const QString& label, QComboBox* list) {
    auto* text = new QLabel(label, this);
    text->setBuddy(list);
    list->setAccessibleName(label);
    row->addWidget(text);
    row->addWidget(list);
  };
  add(tr("Sweep over"), kinds_);
  add(tr("Show"), values_);
  row->addStretch(1);
  auto* second = new QHBoxLayout;
  second->addWidget(run_);
  second->addWidget(cancel_);
  second->addWidget(progress_, 1);
  second->addWidget(note_, 2);
  progress_->setAccessibleName(tr("Progress of the sweep"));
  progress_->setMaximumHeight(run_->sizeHint().height());
  note_->setWordWrap(true);
  progress_->hide();
  cancel_->hide();
  column->addLayout(row);
  column->addLayout(second);
  column->addWidget(plot_, 1);

  connect(kinds_, &QComboBox::activated, this, [this] { run(); });
  connect(values_, &QComboBox::currentIndexChanged, this,
          [this](int index) { plot_->set_value(kCandidateValues[index]); });
  connect(run_, &QPushButton::clicked, this, &SweepTab::run);
  connect(cancel_, &QPushButton::clicked, this, &SweepTab::cancel);
  connect(plot_, &SweepPlot::point_chosen, this, &SweepTab::load);
  connect(&task_, &Task::started, this, [this] {
    progress_->setValue(0);
    progress_->show();
    cancel_->show();
  });
  connect(&task_, &Task::ended, this, [this] {
    progress_->hide();
    cancel_->hide();
    plot_->set_results(results_);
    show_staleness();
  });
  connect(&task_, &Task::failed, this, [this](const QString& message) { note_->setText(message); });
  connect(&workspace_, &Workspace::scenario_changed, this, &SweepTab::show_staleness);
}

void SweepTab::set_kind(SweepKind kind) { kinds_->setCurrentIndex(static_cast<int>(kind)); }
SweepKind SweepTab::kind() const { return kSweepKinds[kinds_->currentIndex()]; }
void SweepTab::set_value(CandidateValue value) {
  values_->setCurrentIndex(static_cast<int>(value));
}

void SweepTab::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (!is_shown_once_ || (is_stale() && !task_.is_running())) run();
}

void SweepTab::run() {
  is_shown_once_ = true;
  swept_ = workspace_.scenario();
  results_ = {kind(), caption_of(swept_), {}};
  arrived_ = 0;
  note_->clear();
  std::vector<Candidate> candidates;
  try {
    const auto plan = workspace_.plan();
    candidates = sweep_candidates(kind(), swept_, plan ? processors_of(plan->machine) : 0);
  } catch (const Error& error) {
    note_->setText(QString::fromStdString(error.what()));
    return;
  }
  for (const Candidate& candidate : candidates) results_.points.push_back({candidate, {}, {}});
  plot_->set_results(results_);
  plot_->set_current(point_now());
  progress_->setRange(0, static_cast<int>(results_.points.size()));
  task_.start(tr("Sweeping"), [this, candidates = std::move(candidates), kind = kind(),
                               scenario = swept_](const TaskContext& context) {
    Machine machine = workspace_.machines().get(scenario.machine).machine;
    apply(scenario.what_if, machine);
    CandidateOptions options = options_for(kind, scenario);
    options.stop = context.stop;
    options.on_result = [this, &context](size_t index, const CandidateResult& result) {
      context.publish([this, index, result] { show_point(index, result); });
    };
    evaluate(candidates, machine, options);
  });
}

void SweepTab::show_point(size_t index, const CandidateResult& result) {
  results_.points[index] = result;
  ++arrived_;
  progress_->setValue(static_cast<int>(arrived_));
  // Every point would draw the picture anew; a few dozen times in all are enough to see it grow.
  const size_t every = std::max<size_t>(1, results_.points.size() / 24);
  if (arrived_ % every == 0) plot_->set_results(results_);
}

std::optional<size_t> SweepTab::point_now() const {
  const Scenario& now = workspace_.scenario();
  for (size_t i = 0; i < results_.points.size(); ++i) {
    Scenario there = swept_;
    vary(there, results_.kind, results_.points[i].candidate);
    if (is_same(now, there)) return i;
  }
  return std::nullopt;
}

/// Values of what is swept that lie between the points do not make the others wrong.
bool SweepTab::is_stale() const {
  if (results_.points.empty()) return false;
  Scenario now = workspace_.scenario();
  vary(now, results_.kind, results_.points.front().candidate);
  Scenario then = swept_;
  vary(then, results_.kind, results_.points.front().candidate);
  return !is_same(now, then);
}

void SweepTab::show_staleness() {
  plot_->set_current(point_now());
  if (results_.points.empty() || task_.is_running()) return;
  if (is_stale()) {
    note_->setText(tr("The scenario has changed since: sweep again."));
    return;
  }
  const bool is_whole = arrived_ == results_.points.size();
  note_->setText(is_whole ? tr("Click a point to load it.") : tr("Cancelled: not all points."));
}

void SweepTab::load(size_t point) {
  if (point >= results_.points.size()) return;
  const Candidate& candidate = results_.points[point].candidate;
  workspace_.edit(
      [&candidate, kind = results_.kind](Scenario& scenario) { vary(scenario, kind, candidate); },
      tr("point of the sweep"));
}

}  // namespace ring::gui
