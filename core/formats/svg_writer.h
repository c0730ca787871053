// SvgWriter: shapes and text of a picture, in order of drawing, as an SVG document.
#pragma once

#include <string>
#include <string_view>

namespace ring {

struct SvgStroke {
  std::string_view color = "none";
  double width = 1;
  std::string_view dash = {};  ///< "4 3": drawn 4, skipped 3.
};

enum class SvgAnchor { kStart, kMiddle, kEnd };

struct SvgText {
  double size = 12;
  std::string_view color = "#222222";
  SvgAnchor anchor = SvgAnchor::kStart;
  bool is_bold = false;
};

/// Coordinates are pixels, the origin is top left, numbers keep two decimals.
class SvgWriter {
 public:
  /// A white background of this size.
  SvgWriter(double width, double height);

  /// Elements that others refer to, such as patterns; given as SVG.
  void define(std::string_view element);
  void rect(double x, double y, double width, double height, std::string_view fill,
            const SvgStroke& stroke = {});
  void line(double x1, double y1, double x2, double y2, const SvgStroke& stroke);
  void circle(double x, double y, double radius, std::string_view fill,
              const SvgStroke& stroke = {});
  /// `data` is the d attribute.
  void path(std::string_view data, std::string_view fill, const SvgStroke& stroke = {});
  /// `y` is the base line.
  void text(double x, double y, std::string_view content, const SvgText& style = {});

  std::string finish() const;

 private:
  double width_, height_;
  std::string definitions_;
  std::string body_;
};

/// At most two decimals, none that are zero: "12", "12.5".
std::string svg_number(double value);
/// About the width in pixels of a text in a sans-serif face; a little more rather than less.
double svg_text_width(std::string_view content, double size);

}  // namespace ring
