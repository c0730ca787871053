#include "gui/window/status_line.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTimer>

#include "gui/session/task.h"

namespace ring::gui {

namespace {

constexpr int kSayMs = 8000;
constexpr int kProgressSteps = 1000;
const QString kFaultStyle = QStringLiteral("color: #D55E00; font-weight: bold;");

}  // namespace

StatusLine::StatusLine(QWidget* parent)
    : QStatusBar(parent),
      summary_(new QLabel(this)),
      message_(new QLabel(this)),
      busy_(new QLabel(this)) {
  addWidget(summary_, 1);
  addWidget(message_, 1);
  addPermanentWidget(busy_);
  for (QLabel* label : {summary_, message_}) {
    // Long texts are cut, not the window widened.
    label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  summary_->setAccessibleName(tr("Summary"));
  message_->setAccessibleName(tr("Message"));
  message_->hide();
}

void StatusLine::watch(Task& task) {
  auto* panel = new QWidget(this);
  auto* row = new QHBoxLayout(panel);
  row->setContentsMargins(0, 0, 0, 0);
  auto* label = new QLabel(panel);
  auto* bar = new QProgressBar(panel);
  bar->setRange(0, kProgressSteps);
  bar->setMaximumWidth(160);
  bar->setAccessibleName(tr("Progress"));
  auto* stop = new QPushButton(tr("Cancel"), panel);
  row->addWidget(label);
  row->addWidget(bar);
  row->addWidget(stop);
  addPermanentWidget(panel);
  panel->hide();
  connect(stop, &QPushButton::clicked, &task, &Task::cancel);
  connect(&task, &Task::started, panel, [panel, label, bar](const QString& text) {
    label->setText(text);
    bar->setValue(0);
    panel->show();
  });
  connect(&task, &Task::progressed, panel, [&task, label, bar](double done, const QString& what) {
    label->setText(what.isEmpty() ? task.label() : task.label() + ": " + what);
    bar->setValue(static_cast<int>(done * kProgressSteps));
  });
  connect(&task, &Task::ended, panel, [this, panel, &task](bool is_cancelled) {
    panel->hide();
    if (is_cancelled) say(tr("%1: cancelled").arg(task.label()));
  });
}

void StatusLine::set_summary(const QString& summary, bool is_fault) {
  summary_->setText(summary);
  summary_->setToolTip(summary);
  summary_->setStyleSheet(is_fault ? kFaultStyle : QString());
}

void StatusLine::set_busy(bool is_busy) {
  busy_->setText(is_busy ? tr("simulating …") : QString());
}

void StatusLine::say(const QString& text) {
  message_->setText(text);
  message_->setToolTip(text);
  message_->setStyleSheet({});
  message_->show();
  QTimer::singleShot(kSayMs, message_, [this, text] {
    if (message_->text() == text) message_->hide();
  });
}

void StatusLine::warn(const QString& text) {
  message_->setText(text);
  message_->setToolTip(text);
  message_->setStyleSheet(kFaultStyle);
  message_->show();
}

QString StatusLine::summary() const { return summary_->text(); }
QString StatusLine::message() const { return message_->isHidden() ? QString() : message_->text(); }

}  // namespace ring::gui
