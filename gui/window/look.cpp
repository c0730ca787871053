#include "gui/window/look.h"

#include <QApplication>
#include <QPalette>
#include <QStyleFactory>
#include <QToolTip>

namespace ring::gui {

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
  QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
  QApplication::setPalette(palette);
  QToolTip::setPalette(palette);
}

}  // namespace ring::gui
