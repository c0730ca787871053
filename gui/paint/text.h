// Text of core and sim, which is UTF-8, as Qt's.
#pragma once

#include <QString>
#include <string_view>

namespace ring::gui {

inline QString qt(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

}  // namespace ring::gui
