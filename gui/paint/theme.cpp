#include "gui/paint/theme.h"

#include <QString>
#include <cmath>

#include "core/formats/op_colors.h"

namespace ring::gui {
namespace {

/// Relative luminance of sRGB (WCAG 2).
double luminance(const QColor& color) {
  const auto linear = [](double channel) {
    return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) +
         0.0722 * linear(color.blueF());
}

}  // namespace

ThemeColors colors_of(Theme theme) {
  ThemeColors colors;
  switch (theme) {
    case Theme::kLight:
      colors.background = QColor(0xFF, 0xFF, 0xFF);
      colors.band = QColor(0xF5, 0xF6, 0xF8);
      colors.panel = QColor(0xFA, 0xFA, 0xFB);
      colors.grid = QColor(0xE4, 0xE6, 0xEA);
      colors.separator = QColor(0xC3, 0xC8, 0xD0);
      colors.text = QColor(0x1E, 0x23, 0x29);
      colors.faint = QColor(0x5B, 0x66, 0x75);
      colors.accent = QColor(0x1A, 0x5F, 0xD0);
      colors.mark = QColor(0x7B, 0x2C, 0xBF);
      colors.hit = QColor(0xC2, 0x18, 0x5B);
      colors.counter = QColor(0x8A, 0x6D, 0x1F);
      colors.memory = QColor(0x5A, 0x6B, 0x8C);
      colors.has_dark_edges = true;
      break;
    case Theme::kDark:
      colors.background = QColor(0x17, 0x1A, 0x1F);
      colors.band = QColor(0x1E, 0x22, 0x29);
      colors.panel = QColor(0x20, 0x24, 0x2B);
      colors.grid = QColor(0x2C, 0x31, 0x3A);
      colors.separator = QColor(0x46, 0x4E, 0x5B);
      colors.text = QColor(0xE6, 0xE9, 0xEE);
      colors.faint = QColor(0x9C, 0xA7, 0xB6);
      colors.accent = QColor(0x6E, 0xA8, 0xFF);
      colors.mark = QColor(0xC7, 0x92, 0xEA);
      colors.hit = QColor(0xFF, 0x6F, 0xA8);
      colors.counter = QColor(0xD9, 0xB4, 0x4A);
      colors.memory = QColor(0x8F, 0xA3, 0xC9);
      colors.has_dark_edges = false;
      break;
  }
  return colors;
}

QColor color_of_hex(std::string_view hex) {
  return QColor(QString::fromLatin1(hex.data(), static_cast<qsizetype>(hex.size())));
}

QColor op_color(OpKind kind) { return color_of_hex(color_of(kind)); }
QColor wait_color() { return color_of_hex(kWaitColor); }
QColor critical_color() { return color_of_hex(kCriticalColor); }

QColor blended(const QColor& under, const QColor& over, double share) {
  const auto mix = [&](int a, int b) { return static_cast<int>(std::lround(a + (b - a) * share)); };
  return QColor(mix(under.red(), over.red()), mix(under.green(), over.green()),
                mix(under.blue(), over.blue()));
}

QColor readable_on(const QColor& color) {
  // Contrast with white is (1 + 0.05) / (L + 0.05), with black (L + 0.05) / 0.05.
  const double l = luminance(color) + 0.05;
  return 1.05 / l >= l / 0.05 ? QColor(Qt::white) : QColor(Qt::black);
}

}  // namespace ring::gui
