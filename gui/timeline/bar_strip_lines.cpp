// How a strip becomes pixels: line by line, each from the layers that are on it.
#include <algorithm>
#include <cstring>

#include "gui/timeline/bar_strip.h"

namespace ring::gui {

/// Draws into `line_`, over what is `under` the layer.
void BarStrip::apply(const Layer& layer, const QRgb* under, int y) {
  const auto count = static_cast<size_t>(width_);
  const HatchedLine hatched{layer.strokes, layer.between,
                            hatch_.data() + (y + layer.hatch_start) % hatch_period_};
  switch (layer.kind) {
    case Layer::kWhole:
      std::memcpy(line_.data(), layer.between, count * sizeof(QRgb));
      return;
    case Layer::kSome:
      copy_line_where(line_.data(), under, layer.cover, layer.between, count);
      return;
    case Layer::kHatchedWhole:
      hatch_line(line_.data(), hatched, count);
      return;
    case Layer::kHatchedSome:
      hatch_line_where(line_.data(), under, layer.cover, hatched, count);
      return;
    case Layer::kArea:
      area_line(line_.data(), under,
                {layer.ends, layer.rims, layer.strokes, layer.rim, layer.has_inside}, y,
                layer.is_mirrored, count);
      return;
  }
}

void BarStrip::apply_labels(int y) {
  for (const StripLabel& label : labels_) {
    const TextMask& mask = *label.mask;
    if (y >= label.box.top && y < label.box.bottom) {
      const int begin = std::max(0, label.left - label.box_pad);
      const int end = std::min(width_, label.left + mask.width + label.box_pad);
      std::fill(line_.begin() + begin, line_.begin() + end, label.box_color);
    }
    if (y < label.top || y >= label.top + mask.height) continue;
    QRgb* const out = line_.data() + label.left;
    const uint8_t* const alpha =
        mask.alpha.data() + static_cast<ptrdiff_t>(y - label.top) * mask.width;
    for (int x = 0; x < mask.width; ++x) {
      if (alpha[x] != 0) out[x] = mixed_rgb(out[x], label.color, alpha[x] + (alpha[x] >> 7));
    }
  }
}

/// Everything on the line, into `line_`.
void BarStrip::draw_line(int y) {
  const QRgb* under = ground_.data();
  for (const size_t i : at_line_) {
    apply(layers_[i], under, y);
    under = line_.data();
  }
  if (at_line_.empty()) std::copy(ground_.begin(), ground_.end(), line_.begin());
  apply_labels(y);
}

void BarStrip::finish() {
  StripLines labelled{height_, 0};
  for (const StripLabel& label : labels_) {
    labelled.top = std::min({labelled.top, label.top, label.box.top});
    labelled.bottom = std::max({labelled.bottom, label.top + label.mask->height, label.box.bottom});
  }
  at_line_before_.clear();
  const QRgb* source = ground_.data();  // What the line before looked like.
  for (int y = 0; y < height_; ++y) {
    at_line_.clear();
    bool is_changing = y >= labelled.top && y < labelled.bottom;
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      if (y < layer.lines.top || y >= layer.lines.bottom) continue;
      if (layer.kind == Layer::kWhole || layer.kind == Layer::kHatchedWhole) at_line_.clear();
      at_line_.push_back(i);
      is_changing = is_changing || (layer.kind != Layer::kWhole && layer.kind != Layer::kSome);
    }
    if (is_changing) {
      draw_line(y);
      source = line_.data();
      at_line_before_.assign(1, layers_.size());  // No other line is the same.
    } else if (at_line_ != at_line_before_) {
      const bool is_one = at_line_.size() == 1 && layers_[at_line_.front()].kind == Layer::kWhole;
      if (!is_one && !at_line_.empty()) draw_line(y);
      source = at_line_.empty() ? ground_.data()
               : is_one         ? layers_[at_line_.front()].between
                                : line_.data();
      at_line_before_ = at_line_;
    }
    write_line(line(y), source, static_cast<size_t>(width_), past_caches_);
  }
  if (past_caches_) end_stream();
}

}  // namespace ring::gui
