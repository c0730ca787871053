// What a session keeps of the window, taken from it and given back.
#pragma once

#include "gui/session/session_file.h"

namespace ring::gui {

class MainWindow;

SessionView view_of(MainWindow& window);
/// The time range is restored once the runs of the session are shown.
void restore_view(const SessionView& view, MainWindow& window);

}  // namespace ring::gui
