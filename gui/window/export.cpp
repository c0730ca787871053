#include "gui/window/export.h"

#include <fmt/format.h>

#include <QBuffer>
#include <QGuiApplication>
#include <QImage>
#include <QPageSize>
#include <QPdfWriter>
#include <QScreen>
#include <QSvgGenerator>
#include <cmath>

#include "core/error.h"
#include "core/formats/file_io.h"

namespace ring::gui {

namespace {

/// With the resolution of the screen, letters are as large beside the picture as on screen.
int units_per_inch() {
  const QScreen* screen = QGuiApplication::primaryScreen();
  return screen != nullptr ? static_cast<int>(std::lround(screen->logicalDotsPerInch())) : 96;
}

QByteArray png_of(const SceneSource& scene, const ExportOptions& options) {
  QImage image(options.size * options.pixel_ratio, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(options.pixel_ratio);
  image.fill(Qt::transparent);
  scene.draw(image, options.size, false, options.pixel_ratio);
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  image.save(&buffer, "PNG");
  return bytes;
}

QByteArray svg_of(const SceneSource& scene, const ExportOptions& options) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  generator.setResolution(units_per_inch());
  generator.setSize(options.size);
  generator.setViewBox(QRect(QPoint(), options.size));
  generator.setTitle(QString::fromStdString("RingScope: " + scene.name));
  scene.draw(generator, options.size, true, 1);
  return bytes;
}

QByteArray pdf_of(const SceneSource& scene, const ExportOptions& options) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&buffer);
    const int per_inch = units_per_inch();
    writer.setResolution(per_inch);
    writer.setPageSize(
        QPageSize(QSizeF(options.size) / per_inch, QPageSize::Inch, {}, QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF());
    writer.setTitle(QString::fromStdString("RingScope: " + scene.name));
    scene.draw(writer, options.size, true, 1);
  }
  return bytes;
}

[[noreturn]] void refuse(const SceneSource& scene, const char* what) {
  throw_usage(fmt::format("the scene '{}' has no {}", scene.name, what),
              "pictures are .svg, .pdf and .png");
}

}  // namespace

PictureFormat format_of(const std::string& path) {
  for (const auto& [end, format] :
       {std::pair{".png", PictureFormat::kPng}, std::pair{".svg", PictureFormat::kSvg},
        std::pair{".pdf", PictureFormat::kPdf}, std::pair{".csv", PictureFormat::kCsv},
        std::pair{".json", PictureFormat::kTrace}, std::pair{".json.gz", PictureFormat::kTrace}}) {
    if (path.ends_with(end)) return format;
  }
  throw_usage(fmt::format("{}: what kind of file should this be?", path),
              "names end in .svg, .pdf, .png, .csv, .json or .json.gz (a Chrome trace)");
}

void export_scene(const SceneSource& scene, const std::string& path, const ExportOptions& options) {
  const auto write = [&path](const QByteArray& bytes) {
    write_file(path, {bytes.constData(), static_cast<size_t>(bytes.size())});
  };
  switch (format_of(path)) {
    case PictureFormat::kPng:
      return write(png_of(scene, options));
    case PictureFormat::kSvg:
      return write(svg_of(scene, options));
    case PictureFormat::kPdf:
      return write(pdf_of(scene, options));
    case PictureFormat::kCsv:
      if (!scene.csv) refuse(scene, "numbers for a .csv");
      return write_file(path, scene.csv());
    case PictureFormat::kTrace:
      if (!scene.write_trace) refuse(scene, "Chrome trace");
      return scene.write_trace(path);
  }
}

}  // namespace ring::gui
