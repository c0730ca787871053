// A wheel over a field that has no focus scrolls the dock instead of changing the field.
#pragma once

class QWidget;

namespace ring::gui {

void guard_wheel(QWidget& field);

}  // namespace ring::gui
