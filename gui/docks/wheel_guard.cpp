#include "gui/docks/wheel_guard.h"

#include <QEvent>
#include <QWidget>

namespace ring::gui {

namespace {

class WheelGuard final : public QObject {
 public:
  using QObject::QObject;
  bool eventFilter(QObject* watched, QEvent* event) override {
    const bool is_stray =
        event->type() == QEvent::Wheel && !static_cast<QWidget*>(watched)->hasFocus();
    if (!is_stray) return false;
    event->ignore();
    return true;
  }
};

}  // namespace

void guard_wheel(QWidget& field) {
  field.setFocusPolicy(Qt::StrongFocus);  // The wheel gives no focus.
  field.installEventFilter(new WheelGuard(&field));
}

}  // namespace ring::gui
