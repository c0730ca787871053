#include "core/formats/svg_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace ring {
namespace {

/// XML text: reserved characters become entities, control characters blanks.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string stroke_attributes(const SvgStroke& stroke) {
  if (stroke.color == "none") return {};
  std::string out = fmt::format(R"( stroke="{}")", stroke.color);
  if (stroke.width != 1) out += fmt::format(R"( stroke-width="{}")", svg_number(stroke.width));
  if (!stroke.dash.empty()) out += fmt::format(R"( stroke-dasharray="{}")", stroke.dash);
  return out;
}

std::string_view anchor_word(SvgAnchor anchor) {
  switch (anchor) {
    case SvgAnchor::kStart:
      return "start";
    case SvgAnchor::kMiddle:
      return "middle";
    case SvgAnchor::kEnd:
      return "end";
  }
  return "start";
}

}  // namespace

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double svg_text_width(std::string_view content, double size) {
  size_t characters = 0;
  for (const char c : content) {
    if ((static_cast<unsigned char>(c) & 0xc0U) != 0x80U) ++characters;  // Not a UTF-8 tail.
  }
  return 0.62 * size * static_cast<double>(characters);
}

SvgWriter::SvgWriter(double width, double height) : width_(width), height_(height) {
  rect(0, 0, width, height, "#ffffff");
}

void SvgWriter::define(std::string_view element) {
  definitions_ += element;
  definitions_ += '\n';
}

void SvgWriter::rect(double x, double y, double width, double height, std::string_view fill,
                     const SvgStroke& stroke) {
  body_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}"{}/>)", svg_number(x),
                       svg_number(y), svg_number(width), svg_number(height), fill,
                       stroke_attributes(stroke));
  body_ += '\n';
}

void SvgWriter::line(double x1, double y1, double x2, double y2, const SvgStroke& stroke) {
  body_ += fmt::format(R"(<line x1="{}" y1="{}" x2="{}" y2="{}"{}/>)", svg_number(x1),
                       svg_number(y1), svg_number(x2), svg_number(y2), stroke_attributes(stroke));
  body_ += '\n';
}

void SvgWriter::circle(double x, double y, double radius, std::string_view fill,
                       const SvgStroke& stroke) {
  body_ += fmt::format(R"(<circle cx="{}" cy="{}" r="{}" fill="{}"{}/>)", svg_number(x),
                       svg_number(y), svg_number(radius), fill, stroke_attributes(stroke));
  body_ += '\n';
}

void SvgWriter::path(std::string_view data, std::string_view fill, const SvgStroke& stroke) {
  body_ += fmt::format(R"(<path d="{}" fill="{}"{}/>)", data, fill, stroke_attributes(stroke));
  body_ += '\n';
}

void SvgWriter::text(double x, double y, std::string_view content, const SvgText& style) {
  body_ += fmt::format(R"(<text x="{}" y="{}" font-size="{}" fill="{}")", svg_number(x),
                       svg_number(y), svg_number(style.size), style.color);
  if (style.anchor != SvgAnchor::kStart) {
    body_ += fmt::format(R"( text-anchor="{}")", anchor_word(style.anchor));
  }
  if (style.is_bold) body_ += R"( font-weight="bold")";
  body_ += fmt::format(">{}</text>\n", escaped(content));
}

std::string SvgWriter::finish() const {
  std::string out = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}")"
      R"( font-family="DejaVu Sans, Helvetica, Arial, sans-serif">)"
      "\n",
      svg_number(width_), svg_number(height_));
  if (!definitions_.empty()) out += "<defs>\n" + definitions_ + "</defs>\n";
  return out + body_ + "</svg>\n";
}

}  // namespace ring
