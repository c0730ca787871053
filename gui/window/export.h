// Export: what a scene shows, written as SVG, PDF, PNG, CSV or Chrome trace.
#pragma once

#include <QSize>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gui/paint/theme.h"

class QPaintDevice;

namespace ring::gui {

enum class PictureFormat { kPng, kSvg, kPdf, kCsv, kTrace };
/// By the end of the name; ".json" and ".json.gz" are traces. Throws Error(kUsage) naming the ends
/// that are known.
PictureFormat format_of(const std::string& path);

/// How a scene is drawn and what its numbers are. A scene without numbers or trace has none.
struct SceneSource {
  std::string name;  ///< "timeline".
  std::function<void(QPaintDevice& device, QSize size, bool is_vector, double pixel_ratio)> draw;
  std::function<std::string()> csv;
  std::function<void(const std::string& path)> write_trace;
};

struct ExportOptions {
  QSize size{1600, 900};
  double pixel_ratio = 1;  ///< Of PNG: 2 gives twice as many pixels.
};

/// Throws Error(kUsage) for a format that the scene does not have, Error(kRunFailed) when the file
/// cannot be written; then the old one is still there.
void export_scene(const SceneSource& scene, const std::string& path, const ExportOptions& options);

}  // namespace ring::gui
