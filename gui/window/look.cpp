#include "gui/window/look.h"

#include <QApplication>
#include <QIcon>
#include <QPainter>
#include <QPalette>
#include <QProxyStyle>
#include <QStyleFactory>
#include <QToolTip>

namespace ring::gui {

namespace {

/// Fusion, with buttons of docks that can be seen on a dark ground as well.
class Look : public QProxyStyle {
 public:
  explicit Look(const QColor& ink)
      : QProxyStyle(QStyleFactory::create(QStringLiteral("Fusion"))), ink_(ink) {}

  QIcon standardIcon(StandardPixmap which, const QStyleOption* option,
                     const QWidget* widget) const override {
    if (which != SP_TitleBarCloseButton && which != SP_TitleBarNormalButton) {
      return QProxyStyle::standardIcon(which, option, widget);
    }
    constexpr int kSide = 10, kScale = 3;
    QPixmap picture(kSide * kScale, kSide * kScale);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(kScale, kScale);
    painter.setPen(QPen(ink_, 1.3));
    if (which == SP_TitleBarCloseButton) {
      painter.drawLine(QPointF(2, 2), QPointF(8, 8));
      painter.drawLine(QPointF(8, 2), QPointF(2, 8));
    } else {
      painter.drawRect(QRectF(1.5, 3.5, 5, 5));
      painter.drawPolyline(QPolygonF{{3.5, 3.5}, {3.5, 1.5}, {8.5, 1.5}, {8.5, 6.5}, {6.5, 6.5}});
    }
    return QIcon(picture);
  }

 private:
  QColor ink_;
};

}  // namespace

Theme preferred_theme() {
  const QColor window = QApplication::palette().color(QPalette::Window);
  return window.lightness() < 128 ? Theme::kDark : Theme::kLight;
}

void apply_look(Theme theme) {
  const ThemeColors colors = colors_of(theme);
  QPalette palette;
  palette.setColor(QPalette::Window, colors.band);
  palette.setColor(QPalette::WindowText, colors.text);
  palette.setColor(QPalette::Base, colors.background);
  palette.setColor(QPalette::AlternateBase, colors.band);
  palette.setColor(QPalette::Text, colors.text);
  palette.setColor(QPalette::Button, colors.panel);
  palette.setColor(QPalette::ButtonText, colors.text);
  palette.setColor(QPalette::BrightText, critical_color());
  palette.setColor(QPalette::Highlight, colors.accent);
  palette.setColor(QPalette::HighlightedText, readable_on(colors.accent));
  palette.setColor(QPalette::Link, colors.accent);
  palette.setColor(QPalette::ToolTipBase, colors.panel);
  palette.setColor(QPalette::ToolTipText, colors.text);
  palette.setColor(QPalette::PlaceholderText, colors.faint);
  palette.setColor(QPalette::Mid, colors.separator);
  palette.setColor(QPalette::Dark, colors.separator.darker(120));
  palette.setColor(QPalette::Light, colors.panel.lighter(110));
  palette.setColor(QPalette::Midlight, colors.grid);
  palette.setColor(QPalette::Shadow, QColor(0, 0, 0, 120));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, colors.faint);
  }
  QApplication::setStyle(new Look(colors.text));
  QApplication::setPalette(palette);
  QToolTip::setPalette(palette);
}

}  // namespace ring::gui
