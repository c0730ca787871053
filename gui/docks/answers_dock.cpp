#include "gui/docks/answers_dock.h"

#include <QGroupBox>
#include <QLabel>
#include <QProgressBar>
#include <QScrollArea>
#include <QScrollBar>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "core/wording.h"
#include "gui/paint/text.h"
#include "gui/session/workspace.h"

namespace ring::gui {

namespace {

/// Label above, value below would cost height; a table keeps both in sight.
QString table_of(const std::vector<Fact>& facts) {
  QString html = QStringLiteral("<table cellspacing=0 cellpadding=1 width='100%'>");
  for (const auto& [label, value] : facts) {
    html += QStringLiteral("<tr><td style='padding-right:10px'>%1</td><td><b>%2</b></td></tr>")
                .arg(qt(label).toHtmlEscaped(), qt(value).toHtmlEscaped());
  }
  return html + QStringLiteral("</table>");
}

QLabel* text_label(QWidget* parent) {
  auto* label = new QLabel(parent);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  // A wrapping label must not widen the dock.
  label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  return label;
}

void set_text(QLabel* label, const QString& text) {
  label->setText(text);
  label->setVisible(!text.isEmpty());
}

}  // namespace

AnswersDock::AnswersDock(Workspace& workspace, QWidget* parent)
    : QDockWidget(tr("Answers"), parent),
      workspace_(workspace),
      content_(new QWidget),
      area_(new QScrollArea) {
  setObjectName(QStringLiteral("answers"));
  auto* column = new QVBoxLayout(content_);
  column->setContentsMargins(8, 8, 8, 8);

  auto add = [&](QLabel*& label, QGroupBox* section, const QString& name) {
    label = text_label(content_);
    label->setAccessibleName(name);
    section->layout()->addWidget(label);
  };
  QGroupBox* prediction = add_section(tr("Prediction"));
  add(time_, prediction, tr("Predicted time"));
  QFont large = font();
  large.setPointSizeF(large.pointSizeF() * 1.7);
  large.setBold(true);
  time_->setFont(large);
  add(interval_, prediction, tr("Interval"));
  interval_->setToolTip(
      tr("A calibrated profile states how much its times vary, which gives the "
         "interval. Jitter, below What if, assumes so much for any profile."));
  add(measured_, prediction, tr("Measured time"));
  add(refusal_, prediction, tr("Why there is no prediction"));
  refusal_->setStyleSheet(QStringLiteral("color: #D55E00; font-weight: bold;"));
  add(bottleneck_, prediction, tr("Bottleneck"));
  add(machine_, prediction, tr("Machine"));
  add(warnings_, prediction, tr("Warnings"));
  questions_ = new QuestionList(content_);
  add_section(tr("Questions"))->layout()->addWidget(questions_);
  add(metrics_, add_section(tr("Overlap")), tr("Overlap"));
  QGroupBox* memory = add_section(tr("Memory"));
  memory_ = new QProgressBar(content_);
  memory_->setTextVisible(false);
  memory_->setMaximumHeight(10);
  memory_->setAccessibleName(tr("Memory of the fullest rank, of its capacity"));
  memory->layout()->addWidget(memory_);
  add(memory_text_, memory, tr("Memory"));
  QGroupBox* balance = add_section(tr("Balance: share of time computing"));
  balance_ = new RankBars(content_);
  balance->layout()->addWidget(balance_);
  add(balance_text_, balance, tr("Balance"));
  add(effects_, add_section(tr("What a change would buy")), tr("What a change would buy"));
  add(reasons_, add_section(tr("Why")), tr("Reasons"));
  add(bounds_, add_section(tr("With these blocks no run is faster than")), tr("Bounds"));
  column->addStretch(1);

  area_->setWidgetResizable(true);
  area_->setFrameShape(QFrame::NoFrame);
  area_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  area_->setWidget(content_);
  area_->setMinimumWidth(264);
  auto* whole = new QWidget;
  auto* rows = new QVBoxLayout(whole);
  rows->setContentsMargins(0, 0, 0, 0);
  rows->addWidget(area_, 1);
  rows->addWidget(build_selection());
  whole->setFocusProxy(area_);
  setWidget(whole);

  connect(&workspace_, &Workspace::planned, this, &AnswersDock::show_plan);
  connect(&workspace_, &Workspace::studied, this, &AnswersDock::show_study);
  connect(&workspace_, &Workspace::explained, this, &AnswersDock::show_reasons);
  connect(&workspace_, &Workspace::answered, this, &AnswersDock::show_answers);
  connect(&workspace_, &Workspace::refused, this, &AnswersDock::show_refusal);
  show_refusal();
  show_selection({});
}

/// Below the rest and always in sight, since what is selected changes with every click.
QWidget* AnswersDock::build_selection() {
  auto* box = new QGroupBox(tr("Selection"));
  selection_ = text_label(box);
  selection_->setAccessibleName(tr("Selection"));
  auto* inner = new QVBoxLayout(box);
  inner->setContentsMargins(4, 4, 4, 4);
  selection_area_ = new QScrollArea;
  selection_area_->setWidgetResizable(true);
  selection_area_->setFrameShape(QFrame::NoFrame);
  selection_area_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  selection_area_->setWidget(selection_);
  selection_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  inner->addWidget(selection_area_);
  return box;
}

/// As high as its text, up to a part of the dock.
void AnswersDock::set_selection(const QString& text) {
  selection_->setText(text);
  fit_selection();
}

void AnswersDock::fit_selection() {
  constexpr double kMostOfDock = 0.4;
  const int bar = selection_area_->verticalScrollBar()->sizeHint().width();
  const int wide = std::max(120, selection_area_->width() - bar);
  const int most = std::max(80, static_cast<int>(height() * kMostOfDock));
  selection_area_->setFixedHeight(std::min(most, selection_->heightForWidth(wide) + 4));
}

void AnswersDock::resizeEvent(QResizeEvent* event) {
  QDockWidget::resizeEvent(event);
  // What is inside gets its new width after this.
  QTimer::singleShot(0, this, &AnswersDock::fit_selection);
}

QGroupBox* AnswersDock::add_section(const QString& title) {
  auto* box = new QGroupBox(title, content_);
  auto* column = new QVBoxLayout(box);
  column->setSpacing(4);
  content_->layout()->addWidget(box);
  return box;
}

void AnswersDock::set_theme(Theme theme) { balance_->set_theme(theme); }

void AnswersDock::show_plan() {
  const StudyPlan& plan = *workspace_.plan();
  bounds_->setText(table_of(bound_facts(plan)));
  memory_text_->setText(qt(memory_text(plan)));
  const double capacity = static_cast<double>(plan.machine.memory_capacity_bytes);
  memory_->setVisible(capacity > 0);
  memory_->setRange(0, 1000);
  if (capacity > 0) {
    const double share = static_cast<double>(plan.bounds.rank_bytes) / capacity;
    memory_->setValue(static_cast<int>(std::min(1.0, share) * 1000));
  }
  // Long names of machines are broken between their parts, not within a unit.
  QString note = workspace_.machine_note();
  note.replace(QStringLiteral(","), QStringLiteral(",\u200b"));
  note.replace(QStringLiteral(",\u200b "), QStringLiteral(", "));
  note.replace(QStringLiteral("B/s"), QStringLiteral("B\u2060/\u2060s"));
  note.replace(QStringLiteral("run ringscope calibrate"),
               tr("Run > Calibrate this machine makes better ones"));
  set_text(machine_, note);
}

void AnswersDock::show_study() {
  const Study& study = *workspace_.study();
  set_text(refusal_, {});
  set_text(time_, qt(format_time(study.result.makespan_ps)));
  set_text(interval_, {});
  set_text(bottleneck_, {});
  show_measured();
  QString warnings;
  for (const std::string& quantity : study.plan->extrapolated) {
    warnings += tr("Extrapolated: %1. ").arg(qt(quantity));
  }
  for (const std::string& note : study.result.notes) warnings += qt(note) + " ";
  if (const auto model = workspace_.model()) {
    for (const std::string& note : model->notes) warnings += qt(note) + " ";
  }
  set_text(warnings_, warnings.trimmed());
  metrics_->setText(table_of(metric_facts(study.result.metrics)));
  balance_->set_metrics(study.result.metrics);
  set_text(balance_text_, qt(describe_balance(study.result.metrics)));
  questions_->set_answers({});
  effects_->setText(tr("working it out …"));
  reasons_->setText(tr("working it out …"));
}

void AnswersDock::show_answers() { questions_->set_answers(*workspace_.answers()); }

void AnswersDock::show_measured() {
  const auto& measured = workspace_.measured();
  set_text(measured_,
           measured ? qt(measured_text(*measured->run, workspace_.study().get())) : QString());
}

void AnswersDock::show_reasons() {
  const StudyReasons& reasons = *workspace_.reasons();
  set_text(interval_,
           reasons.interval.coverage > 0
               ? qt(describe(reasons.interval))
               : tr("no interval: this profile is not calibrated, so its noise is not known"));
  if (reasons.why.sentences.empty()) {
    questions_->set_missing(qt(reasons.why.what_if_missing));
    for (QLabel* label : {effects_, reasons_}) label->setText(qt(reasons.why.what_if_missing));
    return;
  }
  set_text(bottleneck_,
           tr("Along the critical path: %1.").arg(qt(bottleneck_sentence(reasons.why.blame))));
  QString sentences;
  for (const std::string& sentence : reasons.why.sentences) {
    sentences +=
        QStringLiteral("<p style='margin:0 0 6px 0'>%1</p>").arg(qt(sentence).toHtmlEscaped());
  }
  reasons_->setText(sentences);
  if (reasons.why.what_if) {
    effects_->setText(table_of(effect_facts(*reasons.why.what_if)));
  } else if (!reasons.why.what_if_missing.empty()) {
    effects_->setText(qt(reasons.why.what_if_missing));
  }
}

void AnswersDock::show_refusal() {
  const QString& refusal = workspace_.refusal();
  set_text(refusal_, refusal.isEmpty() || workspace_.refusal_hint().isEmpty()
                         ? refusal
                         : refusal + "\n" + workspace_.refusal_hint());
  set_text(time_, refusal.isEmpty() ? tr("…") : tr("no prediction"));
  for (QLabel* label : {interval_, measured_, bottleneck_, machine_, warnings_})
    set_text(label, {});
  for (QLabel* label : {metrics_, effects_, reasons_}) label->setText(QStringLiteral("–"));
  questions_->set_missing(QStringLiteral("–"));
  set_text(balance_text_, {});
  balance_->set_metrics({});
}

void AnswersDock::show_selection(const TimelineSelection& selection) {
  if (selection.is_empty) {
    set_selection(tr(
        "Click an op to see what it is. Drag over the timeline to count, sum and compare slices."));
    return;
  }
  QString text = tr("%1 from %2")
                     .arg(qt(duration_text(selection.to_ps - selection.from_ps)),
                          qt(duration_text(selection.from_ps)));
  const auto add = [&text](const QString& title, const std::optional<SliceStatistics>& statistics) {
    if (!statistics) return;
    text += QStringLiteral("<br><b>%1</b>").arg(title) + table_of(statistics_facts(*statistics));
  };
  add(tr("measured"), selection.measured);
  add(tr("predicted"), selection.predicted);
  set_selection(text);
}

void AnswersDock::show_op(const QString& words, std::optional<SliceRef> slice) {
  if (!slice) return show_selection({});
  QString text = words.toHtmlEscaped().replace('\n', QStringLiteral("<br>"));
  const auto model = workspace_.model();
  const auto reasons = workspace_.reasons();
  const Slice* of = model ? model->slice(*slice) : nullptr;
  if (of != nullptr && reasons && slice->origin == TimelineOrigin::kPredicted) {
    const OpId op = of->op;
    const Picoseconds slack_ps =
        reasons->why.slack_ps[static_cast<size_t>(op.rank)][static_cast<size_t>(op.index)];
    text += slack_ps == 0 ? tr("<br>no slack: any delay of it delays the run")
                          : tr("<br>slack %1").arg(qt(duration_text(slack_ps)));
  }
  set_selection(text);
}

QString AnswersDock::text() const {
  QString text;
  for (const QLabel* label :
       {time_, interval_, measured_, refusal_, bottleneck_, machine_, warnings_, metrics_,
        memory_text_, balance_text_, effects_, reasons_, bounds_, selection_}) {
    if (!label->text().isEmpty()) text += label->accessibleName() + ": " + label->text() + "\n";
  }
  return text + questions_->text();
}

}  // namespace ring::gui
