// Look: the light and the dark palette of all widgets.
#pragma once

#include "gui/paint/theme.h"

class QApplication;

namespace ring::gui {

/// Fusion style with the colours of the theme.
void apply_look(Theme theme);
/// What the desktop prefers, as far as its palette tells.
Theme preferred_theme();

}  // namespace ring::gui
