// The inner loops of drawing a row: what happens to the pixels of one line.
#pragma once

#include <QRgb>
#include <cstddef>
#include <cstdint>

namespace ring::gui {

/// All bits set where a condition holds for a pixel, else none.
using PixelMask = uint32_t;
inline constexpr PixelMask kAllBits = 0xFFFFFFFFU;

/// What a hatched line is made of; arrays of a pixel each.
struct HatchedLine {
  const QRgb* strokes;
  const QRgb* between;
  const PixelMask* is_stroke;
};

/// Fills `out` with `count` pixels of a hatched line.
void hatch_line(QRgb* out, const HatchedLine& line, size_t count);
/// The same where `cover` says so, else what is `under` it, which may be `out` itself.
void hatch_line_where(QRgb* out, const QRgb* under, const PixelMask* cover, const HatchedLine& line,
                      size_t count);
/// Copies `from` where `cover` says so, else `under`.
void copy_line_where(QRgb* out, const QRgb* under, const PixelMask* cover, const QRgb* from,
                     size_t count);

/// One line of an area that begins at `ends` and grows to higher lines: `rim` up to the line
/// before `rims`, and from there on `inside`.
struct AreaLine {
  const int32_t* ends;
  const int32_t* rims;
  const QRgb* inside;
  QRgb rim;
  bool has_inside;
};
/// `line` is that of `out`; beside the area `out` is as `under`, which may be `out` itself. With
/// `is_mirrored` the area grows to lower lines instead.
void area_line(QRgb* out, const QRgb* under, const AreaLine& area, int32_t line, bool is_mirrored,
               size_t count);

/// Copies a line that is not read again soon. `past_caches` spares the read of what is overwritten
/// where the machine can, which pays for pictures larger than its caches; then `end_stream` must
/// come before anybody else reads it.
void write_line(QRgb* to, const QRgb* from, size_t count, bool past_caches);
void end_stream();

}  // namespace ring::gui
