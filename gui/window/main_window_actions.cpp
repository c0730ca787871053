// What the actions of the table do.
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QMessageBox>
#include <QSlider>
#include <QTabWidget>
#include <QTextDocument>

#include "core/build_info.h"
#include "gui/docks/slider_box.h"
#include "gui/window/command_palette.h"
#include "gui/window/help_sheet.h"
#include "gui/window/main_window.h"

namespace ring::gui {

void MainWindow::bind_actions() {
  actions_->bind("open", [this] { files_->open(); });
  actions_->bind("save_session", [this] { files_->save_session(); });
  actions_->bind("save_session_as", [this] { files_->save_session_as(); });
  actions_->bind("save_scenario", [this] { files_->save_scenario(); });
  actions_->bind("save_run", [this] { files_->save_run(); });
  actions_->bind("export", [this] { files_->export_scene_shown(); });
  actions_->bind("quit", [this] { close(); });
  actions_->bind("undo", [this] { workspace_.undo(); });
  actions_->bind("redo", [this] { workspace_.redo(); });
  actions_->bind("reset_what_if", [this] { workspace_.edit(clear_what_ifs, tr("what-ifs")); });
  actions_->bind("copy_answers", [this] {
    QTextDocument document;
    document.setHtml(answers_->text().replace('\n', QStringLiteral("<br>")));
    QApplication::clipboard()->setText(document.toPlainText());
    status_->say(tr("Copied"));
  });
  actions_->bind("measure", [this] { runner_.measure(); });
  actions_->bind("calibrate", [this] { runner_.calibrate(); });
  actions_->bind("cancel", [this] {
    runner_.cancel();
    sweeps_->cancel();
    files_->task().cancel();
    play_.stop();
  });
  actions_->bind("clear_measured", [this] { workspace_.clear_measured(); });
  actions_->bind("sweep_block_depth", [this] { start_sweep(SweepKind::kBlockDepth); });
  actions_->bind("sweep_seq_len", [this] { start_sweep(SweepKind::kSeqLen); });
  actions_->bind("sweep_ring_size", [this] { start_sweep(SweepKind::kRingSize); });
  actions_->bind("sweep_strategies", [this] { start_sweep(SweepKind::kStrategies); });
  actions_->bind("palette", [this] { show_palette(); });
  actions_->bind("help", [this] {
    auto* sheet = new HelpSheet(actions_->all(), this);
    sheet->setAttribute(Qt::WA_DeleteOnClose);
    sheet->show();
  });
  actions_->bind("about", [this] { show_about(); });
}

void MainWindow::bind_view_actions() {
  const auto show_tab = [this](QWidget* tab) {
    tabs_->setCurrentWidget(tab);
    tab->setFocus();
  };
  actions_->bind("tab_timeline", [this, show_tab] { show_tab(timeline_); });
  actions_->bind("tab_sweeps", [this] {
    tabs_->setCurrentWidget(sweeps_);
    sweeps_->plot().setFocus();
  });
  actions_->bind("tab_ring", [this, show_tab] { show_tab(ring_); });
  actions_->bind("parameters", [this] {
    parameters_->show();
    parameters_->raise();
    parameters_->number("block").slider()->setFocus();
  });
  actions_->bind("answers", [this] {
    answers_->show();
    answers_->raise();
    answers_->widget()->setFocus();
  });
  actions_->bind("hide_docks", [this] {
    const bool is_shown = parameters_->isVisible() || answers_->isVisible();
    parameters_->setVisible(!is_shown);
    answers_->setVisible(!is_shown);
  });
  actions_->bind("theme",
                 [this] { set_theme(theme_ == Theme::kLight ? Theme::kDark : Theme::kLight); });
  actions_->bind("play", [this] { play(); });
  actions_->bind("hop_colors", [this] {
    const bool is_slack = ring_->coloring() == HopColoring::kSlack;
    ring_->set_coloring(is_slack ? HopColoring::kUtilization : HopColoring::kSlack);
  });
}

void MainWindow::update_actions() {
  const ScenarioHistory& history = workspace_.history();
  const auto set = [this](std::string_view id, bool is_enabled) {
    actions_->action(id)->setEnabled(is_enabled);
  };
  set("undo", history.can_undo());
  set("redo", history.can_redo());
  actions_->action("undo")->setText(
      tr("Undo %1").arg(QString::fromStdString(history.undo_text())).trimmed());
  actions_->action("redo")->setText(
      tr("Redo %1").arg(QString::fromStdString(history.redo_text())).trimmed());
  set("clear_measured", workspace_.measured().has_value());
  set("save_run", workspace_.study() != nullptr);
  const QString name = QString::fromStdString(workspace_.scenario().name);
  setWindowTitle(name.isEmpty() ? tr("RingScope") : tr("%1 – RingScope").arg(name));
}

void MainWindow::start_sweep(SweepKind kind) {
  sweeps_->set_kind(kind);
  sweeps_->run();
  tabs_->setCurrentWidget(sweeps_);
}

/// Where the answer can be seen.
void MainWindow::show_answer(Question question, int rank) {
  switch (question) {
    case Question::kHiding:
      sweeps_->set_value(CandidateValue::kExposedShare);
      return start_sweep(SweepKind::kBlockDepth);
    case Question::kDepth:
      sweeps_->set_value(CandidateValue::kTime);
      return start_sweep(SweepKind::kBlockDepth);
    case Question::kLateRank:
      return show_rank(rank);
    case Question::kLink:
      workspace_.edit([](Scenario& s) { s.what_if.bandwidth *= 2; }, tr("links twice as fast"));
      status_->say(tr("Link bandwidth doubled, below What if; Ctrl+Z takes it back"));
      return;
  }
}

/// Selects the op of the rank that ends last of those that compute.
void MainWindow::show_rank(int rank) {
  tabs_->setCurrentWidget(timeline_);
  const auto model = workspace_.model();
  const ModelRun* run = model ? model->run(TimelineOrigin::kPredicted) : nullptr;
  if (run == nullptr) return;
  const std::vector<Slice>& slices = run->timeline().slices;
  std::optional<uint32_t> last;
  for (uint32_t i = 0; i < slices.size(); ++i) {
    if (slices[i].op.rank != rank || slices[i].flops == 0) continue;
    if (!last || slices[i].end_ps > slices[*last].end_ps) last = i;
  }
  if (last) timeline_->select_slice(SliceRef{TimelineOrigin::kPredicted, *last});
}

void MainWindow::show_palette() {
  auto* palette = new CommandPalette(actions_->all(), this);
  palette->setAttribute(Qt::WA_DeleteOnClose);
  connect(palette, &QDialog::accepted, this, [palette] {
    if (palette->chosen() != nullptr) palette->chosen()->trigger();
  });
  palette->open();
}

void MainWindow::show_about() {
  QString text = tr("<b>RingScope %1</b><p>Runs ring attention for real and predicts it before it "
                    "runs.</p><p>Built with %2.</p><p>The sources are under the Apache License "
                    "2.0; this program, being linked with QCustomPlot, is under the GPL-3.</p>")
                     .arg(QString::fromUtf8(kVersion.data(), std::ssize(kVersion)),
                          QString::fromUtf8(kCompiler.data(), std::ssize(kCompiler)));
  auto* box =
      new QMessageBox(QMessageBox::NoIcon, tr("About RingScope"), text, QMessageBox::Close, this);
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->open();
}

}  // namespace ring::gui
