#include "core/mask_mix.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "core/units.h"

namespace ring {
namespace {

constexpr std::string_view kAllowed =
    "parts are text=N, frames=KxN (K frames of N tokens), frames=KxN+A+B (A boundary tokens before "
    "and B behind each frame) and new (a new document)";

/// Each is up to three segments in memory.
constexpr int64_t kMostFrames = int64_t{1} << 22;

[[noreturn]] void refuse(std::string_view part) {
  throw_usage(fmt::format("'{}' is no part of a mix", part), std::string(kAllowed));
}

/// Cuts off what stands before the sign; empty when there is none, and `rest` is all there is.
std::string_view cut(std::string_view& rest, char sign) {
  const size_t at = rest.find(sign);
  const std::string_view head = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view() : rest.substr(at + 1);
  return head;
}

MixPart parse_frames(std::string_view value, std::string_view part) {
  const size_t cross = value.find('x');
  if (cross == std::string_view::npos) refuse(part);
  MixPart frames;
  frames.kind = MixPart::Kind::kFrames;
  frames.frames = parse_count(value.substr(0, cross), "frames");
  std::string_view rest = value.substr(cross + 1);
  frames.tokens = parse_count(cut(rest, '+'), "tokens of a frame");
  if (!rest.empty()) frames.before = parse_count(cut(rest, '+'), "boundary tokens");
  if (!rest.empty()) frames.after = parse_count(rest, "boundary tokens");
  return frames;
}

MixPart parse_part(std::string_view part) {
  if (part == "new") return {MixPart::Kind::kNewDocument, 0, 1, 0, 0};
  std::string_view value = part;
  const std::string_view key = cut(value, '=');
  if (value.empty()) refuse(part);
  if (key == "frames") return parse_frames(value, part);
  if (key != "text") refuse(part);
  return {MixPart::Kind::kText, parse_count(value, "text"), 1, 0, 0};
}

/// Appends segments; causal ones that follow each other become one.
class MixWriter {
 public:
  void causal(int64_t tokens) {
    if (tokens == 0) return;
    const bool follows = !segments_.empty() && segments_.back().end_slope == 1 &&
                         segments_.back().begin_base == document_;
    if (follows) {
      segments_.back().q_end += tokens;
    } else {
      segments_.push_back({at_, at_ + tokens, document_, 0, 1, 1});
    }
    at_ += tokens;
  }
  void full(int64_t tokens) {
    if (tokens == 0) return;
    segments_.push_back({at_, at_ + tokens, document_, 0, at_ + tokens, 0});
    at_ += tokens;
  }
  void new_document() { document_ = at_; }
  std::vector<MaskSegment> take() { return std::move(segments_); }

 private:
  std::vector<MaskSegment> segments_;
  int64_t at_ = 0, document_ = 0;
};

}  // namespace

int64_t MixPart::all_tokens() const {
  if (kind == Kind::kNewDocument) return 0;
  const int64_t with_bounds = checked_add(checked_add(tokens, before, "the tokens of a frame"),
                                          after, "the tokens of a frame");
  return checked_multiply(frames, with_bounds, "the tokens of a mix");
}

Mask Mask::mix(int64_t seq_len, const std::vector<MixPart>& parts) {
  int64_t tokens = 0;
  for (const MixPart& part : parts)
    tokens = checked_add(tokens, part.all_tokens(), "the tokens of a mix");
  if (tokens != seq_len) {
    throw_usage(
        fmt::format("the parts of the mix have {} tokens, the sequence has {}", tokens, seq_len),
        fmt::format("set the sequence length to {}, or change the parts", tokens));
  }
  int64_t frames = 0;
  for (const MixPart& part : parts) {
    if (part.all_tokens() > 0) frames = checked_add(frames, part.frames, "the frames of a mix");
  }
  if (frames > kMostFrames) {
    throw_usage(fmt::format("the mix has {} frames; at most {} can be kept", frames, kMostFrames),
                "take fewer and larger frames");
  }
  MixWriter writer;
  for (const MixPart& part : parts) {
    switch (part.kind) {
      case MixPart::Kind::kText:
        writer.causal(part.tokens);
        break;
      case MixPart::Kind::kFrames:
        for (int64_t frame = 0; part.all_tokens() > 0 && frame < part.frames; ++frame) {
          writer.causal(part.before);
          writer.full(part.tokens);
          writer.causal(part.after);
        }
        break;
      case MixPart::Kind::kNewDocument:
        writer.new_document();
        break;
    }
  }
  return {"mix", "mix:" + mix_text(parts), seq_len, writer.take()};
}

std::vector<MixPart> parse_mix(std::string_view text) {
  std::vector<MixPart> parts;
  while (!text.empty()) parts.push_back(parse_part(cut(text, ',')));
  return parts;
}

std::string mix_text(const std::vector<MixPart>& parts) {
  std::vector<std::string> texts;
  for (const MixPart& part : parts) {
    switch (part.kind) {
      case MixPart::Kind::kText:
        texts.push_back(fmt::format("text={}", part.tokens));
        break;
      case MixPart::Kind::kFrames:
        texts.push_back(fmt::format("frames={}x{}", part.frames, part.tokens));
        if (part.before > 0 || part.after > 0)
          texts.back() += fmt::format("+{}+{}", part.before, part.after);
        break;
      case MixPart::Kind::kNewDocument:
        texts.emplace_back("new");
        break;
    }
  }
  return fmt::format("{}", fmt::join(texts, ","));
}

}  // namespace ring
