#include "core/formats/bar_folding.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ring {
namespace {

constexpr double kNarrow = 1;
constexpr size_t kKinds = kOpKinds + 1;  ///< Op kinds and waiting.

size_t kind_index(OpKind kind, bool is_wait) {
  return is_wait ? kKinds - 1 : static_cast<size_t>(kind);
}

/// What fills the pixel column at hand.
struct Column {
  std::array<double, kKinds> filled{};
  size_t first_slice = 0;
  bool is_used = false;
};

class Folder {
 public:
  explicit Folder(std::vector<FoldedBar>& out) : out_(out) {}

  void add(double begin, double end, size_t kind, size_t slice) {
    while (begin < end) {
      const double at = std::floor(begin);
      if (!column_.is_used || at != at_) {
        flush();
        at_ = at;
        column_.first_slice = slice;
        column_.is_used = true;
      }
      const double stop = std::min(end, at + 1);
      column_.filled[kind] += stop - begin;
      begin = stop;
    }
  }

  /// Draws the column at hand.
  void flush() {
    if (!column_.is_used) return;
    const auto most = std::max_element(column_.filled.begin(), column_.filled.end());
    double total = 0;
    for (const double share : column_.filled) total += share;
    const auto kind = static_cast<size_t>(most - column_.filled.begin());
    if (total >= 0.5) draw(kind);
    column_ = {};
  }

 private:
  void draw(size_t kind) {
    const bool is_wait = kind == kKinds - 1;
    const OpKind op = is_wait ? OpKind::kCompute : static_cast<OpKind>(kind);
    if (!out_.empty()) {
      FoldedBar& last = out_.back();
      if (last.is_folded && last.x + last.width == at_ && last.is_wait == is_wait &&
          last.kind == op) {
        last.width += 1;
        return;
      }
    }
    out_.push_back({at_, 1, op, is_wait, true, column_.first_slice});
  }

  std::vector<FoldedBar>& out_;
  Column column_;
  double at_ = 0;
};

}  // namespace

std::vector<FoldedBar> fold_bars(const Timeline& timeline, const TimelineRow& row, double left,
                                 double width, Picoseconds end_ps) {
  std::vector<FoldedBar> out;
  Folder folder(out);
  const double scale = width / static_cast<double>(std::max<Picoseconds>(end_ps, 1));
  for (const RowBar& bar : row.bars) {
    const OpKind kind = timeline.slices[bar.slice].kind;
    const double begin = left + scale * static_cast<double>(bar.begin_ps);
    const double end = left + scale * static_cast<double>(bar.end_ps);
    if (end - begin < kNarrow) {
      folder.add(begin, end, kind_index(kind, bar.is_wait), bar.slice);
      continue;
    }
    folder.flush();
    out.push_back({begin, end - begin, kind, bar.is_wait, false, bar.slice});
  }
  folder.flush();
  return out;
}

}  // namespace ring
