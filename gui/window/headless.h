// Headless: a scene of a scenario, run or session as a file, without anything on a screen.
#pragma once

#include <optional>
#include <string>

#include "gui/paint/theme.h"
#include "gui/window/export.h"

namespace ring::gui {

class MainWindow;

struct HeadlessExport {
  std::string file;
  std::string scene = "timeline";
  std::string layout;  ///< "measured", "predicted", "stacked" or "overlaid"; empty: as it is.
  std::string cursor;  ///< A time such as "3ms"; empty: the start.
  ExportOptions options;
};

/// Waits until everything that the window works out is there. Throws Error with what went wrong.
void export_headless(MainWindow& window, const HeadlessExport& wanted);

/// Runs the event loop until the scenario is simulated and no task runs; with `with_reasons` until
/// it is explained too.
void wait_until_settled(MainWindow& window, bool with_reasons = true);

}  // namespace ring::gui
