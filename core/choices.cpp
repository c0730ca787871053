#include "core/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/count_list.h"
#include "core/error.h"
#include "core/legality.h"
#include "core/strategy.h"

namespace ring {

namespace {

constexpr int64_t kUsualWindow = 4096;

/// The strategy as it can cut a small problem over `ranks`, with a parameter where it needs one;
/// empty when it cannot.
std::string usable_text(const Strategy& strategy, int ranks) {
  Problem problem;
  problem.mask = Mask::full(4 * int64_t{ranks});
  Tuning tuning;
  tuning.ranks = ranks;
  tuning.block_tokens = 1;
  tuning.partition = "contiguous";
  tuning.strategy = std::string(strategy.name);
  const std::optional<Tuning> legal = nearest_legal(problem, tuning);
  const bool is_usable =
      legal && legal->ranks == ranks && kind_of(legal->strategy) == strategy.name;
  return is_usable ? legal->strategy : std::string();
}

std::string even_bounds(std::string_view kind, int64_t seq_len) {
  return fmt::format("{}:0,{},{}", kind, seq_len / 2, seq_len);
}

/// Text, then two frames of a quarter of the sequence each.
std::string even_mix(int64_t seq_len) {
  const int64_t frame = seq_len / 4;
  if (frame == 0) return fmt::format("mix:text={}", seq_len);
  return fmt::format("mix:text={},frames=2x{}", seq_len - 2 * frame, frame);
}

}  // namespace

std::vector<ChoiceForm> mask_forms(int64_t seq_len) {
  const int64_t window = std::max<int64_t>(1, std::min(kUsualWindow, seq_len));
  return {
      {"causal", "", "every query sees itself and all before it", "causal"},
      {"full", "", "every query sees every key", "full"},
      {"window", "tokens", "causal, within a sliding window", fmt::format("window:{}", window)},
      {"chunked", "tokens", "causal, within chunks", fmt::format("chunked:{}", window)},
      {"prefix", "tokens", "a prefix seen in full, then causal",
       fmt::format("prefix:{}", seq_len / 4)},
      {"docs", "bounds 0,...,length", "documents packed one after the other, causal in each",
       even_bounds("docs", seq_len)},
      {"docs-full", "bounds 0,...,length", "packed documents, full in each",
       even_bounds("docs-full", seq_len)},
      {"groups", "bounds 0,...,length", "full within groups, causal across them",
       even_bounds("groups", seq_len)},
      {"mix", "parts text=N, frames=KxN, new",
       "text, causal, and video frames, each full in itself", even_mix(seq_len)},
      {"decode", "tokens", "only the last tokens ask, each for all before it", "decode:1"},
  };
}

std::vector<ChoiceForm> partition_forms(int64_t seq_len, int ranks) {
  std::vector<int64_t> lengths(static_cast<size_t>(std::max(1, ranks)));
  for (size_t i = 0; i < lengths.size(); ++i) {
    const auto parts = static_cast<int64_t>(lengths.size());
    lengths[i] = seq_len / parts + (static_cast<int64_t>(i) < seq_len % parts ? 1 : 0);
  }
  return {
      {"zigzag", "", "a chunk from the front and one from the back: causal work is even", "zigzag"},
      {"doc-zigzag", "", "every document of the mask dealt like zigzag", "doc-zigzag"},
      {"contiguous", "", "one piece a rank", "contiguous"},
      {"shorter-last", "", "equal pieces, the last ranks get what is left", "shorter-last"},
      {"balanced", "one speed a rank", "pieces of equal work under the mask, or as the speeds are",
       fmt::format("balanced:{}", fmt::join(std::vector<int>(lengths.size(), 1), ","))},
      {"striped", "tokens", "stripes dealt in turn", "striped:1"},
      {"uneven", "one length a rank", "pieces of given lengths",
       fmt::format("uneven:{}", fmt::join(lengths, ","))},
  };
}

std::vector<ChoiceForm> strategy_forms(int ranks) {
  std::vector<ChoiceForm> forms;
  for (const Strategy& strategy : all_strategies()) {
    std::string example = usable_text(strategy, ranks);
    if (example.empty()) continue;
    forms.push_back({std::string(strategy.name), std::string(strategy.parameter),
                     std::string(strategy.summary), std::move(example)});
  }
  return forms;
}

namespace {

// A new enumerator is missing in a switch below, which is an error, and then belongs in the list.
constexpr DType kDTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
constexpr Pass kPasses[] = {Pass::kForward, Pass::kForwardBackward, Pass::kBackward};

constexpr size_t place_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kBF16:
      return 1;
    case DType::kF16:
      return 2;
  }
  return std::size(kDTypes);
}
constexpr size_t place_of(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return 0;
    case Pass::kForwardBackward:
      return 1;
    case Pass::kBackward:
      return 2;
  }
  return std::size(kPasses);
}

template <typename T, size_t kCount>
constexpr bool is_in_order(const T (&list)[kCount]) {
  for (size_t i = 0; i < kCount; ++i) {
    if (place_of(list[i]) != i) return false;
  }
  return true;
}
static_assert(is_in_order(kDTypes) && is_in_order(kPasses));

}  // namespace

std::span<const DType> all_dtypes() { return kDTypes; }
std::span<const Pass> all_passes() { return kPasses; }

std::string_view kind_of(std::string_view text) { return text.substr(0, text.find(':')); }

std::string_view parameter_of(std::string_view text) {
  const size_t colon = text.find(':');
  return colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
}

Problem with_seq_len(const Problem& problem, int64_t seq_len) {
  Problem changed = problem;
  const std::string text = problem.mask.text();
  const std::string_view kind = kind_of(text);
  const bool has_bounds = kind == "docs" || kind == "docs-full" || kind == "groups";
  if (has_bounds && problem.seq_len() > 0) {
    std::vector<int64_t> bounds = parse_count_list(parameter_of(text), "mask");
    const double stretch = static_cast<double>(seq_len) / static_cast<double>(problem.seq_len());
    for (int64_t& bound : bounds) {
      bound = std::min(seq_len, static_cast<int64_t>(static_cast<double>(bound) * stretch));
    }
    bounds.back() = seq_len;
    changed.mask = Mask::parse(fmt::format("{}:{}", kind, fmt::join(bounds, ",")), seq_len);
  } else if (kind == "decode") {
    const int64_t tokens = parse_count(parameter_of(text), "decoded tokens");
    changed.mask = Mask::decode(seq_len, std::min(tokens, seq_len));
  } else if (kind == "prefix") {
    const int64_t prefix = parse_count(parameter_of(text), "prefix");
    changed.mask = Mask::prefix_lm(seq_len, std::min(prefix, seq_len));
  } else {
    changed.mask = Mask::parse(text, seq_len);
  }
  return changed;
}

}  // namespace ring
