#include "gui/timeline/line_kernels.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

// Loops over pixels are compiled for wide vectors too and chosen when the program starts.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define RING_PIXEL_LOOP __attribute__((target_clones("avx2", "default")))
#else
#define RING_PIXEL_LOOP
#endif

namespace ring::gui {

RING_PIXEL_LOOP void hatch_line(QRgb* __restrict out, const HatchedLine& line, size_t count) {
  const QRgb* const strokes = line.strokes;
  const QRgb* const between = line.between;
  const PixelMask* const is_stroke = line.is_stroke;
  for (size_t x = 0; x < count; ++x) {
    out[x] = between[x] ^ ((between[x] ^ strokes[x]) & is_stroke[x]);
  }
}

RING_PIXEL_LOOP void hatch_line_where(QRgb* out, const QRgb* under, const PixelMask* cover,
                                      const HatchedLine& line, size_t count) {
  const QRgb* const strokes = line.strokes;
  const QRgb* const between = line.between;
  const PixelMask* const is_stroke = line.is_stroke;
#pragma GCC ivdep
  for (size_t x = 0; x < count; ++x) {
    const QRgb hatched = between[x] ^ ((between[x] ^ strokes[x]) & is_stroke[x]);
    out[x] = under[x] ^ ((under[x] ^ hatched) & cover[x]);
  }
}

RING_PIXEL_LOOP void copy_line_where(QRgb* out, const QRgb* under, const PixelMask* cover,
                                     const QRgb* from, size_t count) {
#pragma GCC ivdep
  for (size_t x = 0; x < count; ++x) out[x] = under[x] ^ ((under[x] ^ from[x]) & cover[x]);
}

RING_PIXEL_LOOP void area_line(QRgb* out, const QRgb* under, const AreaLine& area, int32_t line,
                               bool is_mirrored, size_t count) {
  const int32_t* const ends = area.ends;
  const int32_t* const rims = area.rims;
  const QRgb* const inside = area.inside;
  const QRgb rim = area.rim;
  const PixelMask fill = area.has_inside ? kAllBits : 0U;
  const int32_t sign = is_mirrored ? -1 : 1;
  const int32_t at = is_mirrored ? -line - 1 : line;
#pragma GCC ivdep
  for (size_t x = 0; x < count; ++x) {
    const PixelMask within = at >= sign * ends[x] ? kAllBits : 0U;
    const PixelMask on_rim = within & (at < sign * rims[x] ? kAllBits : 0U);
    const PixelMask filled = within & ~on_rim & fill;
    out[x] = (under[x] & ~(on_rim | filled)) | (rim & on_rim) | (inside[x] & filled);
  }
}

void write_line(QRgb* to, const QRgb* from, size_t count, [[maybe_unused]] bool past_caches) {
#if defined(__SSE2__)
  if (past_caches) {
    constexpr size_t kWide = sizeof(__m128i);
    const size_t off = reinterpret_cast<uintptr_t>(to) % kWide;
    const size_t head = std::min(count, off == 0 ? size_t{0} : (kWide - off) / sizeof(QRgb));
    std::memcpy(to, from, head * sizeof(QRgb));
    size_t x = head;
    for (; x + 4 <= count; x += 4) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + x),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + x)));
    }
    std::memcpy(to + x, from + x, (count - x) * sizeof(QRgb));
    return;
  }
#endif
  std::memcpy(to, from, count * sizeof(QRgb));
}

void end_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace ring::gui
