#include "gui/window/headless.h"

#include <QCoreApplication>
#include <QEventLoop>

#include "core/error.h"
#include "gui/window/main_window.h"
#include "gui/window/scenes.h"

namespace ring::gui {

namespace {

constexpr int kTurnMs = 20;
constexpr int kLayoutTurns = 8;

bool is_settled(MainWindow& window, bool with_reasons) {
  Workspace& workspace = window.workspace();
  if (workspace.is_busy() || window.files().task().is_running() ||
      window.sweeps().task().is_running() || window.runner().task().is_running()) {
    return false;
  }
  if (!workspace.refusal().isEmpty() || !with_reasons) return true;
  const auto reasons = workspace.reasons();
  return reasons && (reasons->why.what_if || !reasons->why.what_if_missing.empty());
}

LayoutMode layout_of(const std::string& name) {
  if (name == "measured") return LayoutMode::kMeasured;
  if (name == "predicted") return LayoutMode::kPredicted;
  if (name == "stacked") return LayoutMode::kStacked;
  if (name == "overlaid") return LayoutMode::kOverlaid;
  throw_usage("no layout '" + name + "'", "measured, predicted, stacked or overlaid");
}

}  // namespace

void wait_until_settled(MainWindow& window, bool with_reasons) {
  while (!is_settled(window, with_reasons)) {
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, kTurnMs);
  }
}

void export_headless(MainWindow& window, const HeadlessExport& wanted) {
  format_of(wanted.file);
  scene_of(window, wanted.scene);
  const bool with_reasons = wanted.scene == "ring" || wanted.scene == "window";
  wait_until_settled(window, with_reasons);
  const Workspace& workspace = window.workspace();
  if (!workspace.refusal().isEmpty()) {
    throw Error(ErrorKind::kUsage, workspace.refusal().toStdString(),
                workspace.refusal_hint().toStdString());
  }
  if (!wanted.layout.empty()) window.timeline().set_layout_mode(layout_of(wanted.layout));
  if (!wanted.cursor.empty()) {
    const Picoseconds at_ps = parse_time(wanted.cursor, "--cursor");
    window.timeline().set_cursor_ps(at_ps);
    window.ring().set_cursor_ps(at_ps);
  }
  prepare_scene(window, wanted.scene);
  wait_until_settled(window, with_reasons);
  window.resize(wanted.options.size);
  // A longer text asks its layout, that the next outer one, and so on: a turn each.
  for (int turn = 0; turn < kLayoutTurns; ++turn) QCoreApplication::processEvents();
  export_scene(scene_of(window, wanted.scene), wanted.file, wanted.options);
}

}  // namespace ring::gui
