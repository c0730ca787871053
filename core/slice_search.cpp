#include "core/slice_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "core/error.h"

namespace ring {
namespace {

constexpr std::array kSearchedKinds{
    OpKind::kAttend,   OpKind::kSend,    OpKind::kReceive,  OpKind::kMerge, OpKind::kCopy,
    OpKind::kFinalize, OpKind::kCompute, OpKind::kBackward, OpKind::kDelta, OpKind::kAdd};
static_assert(kSearchedKinds.size() == kOpKinds);
constexpr std::string_view kAllowed =
    "attend, send, receive, merge, copy, finalize, compute, backward, delta, add, wait; rank, "
    "lane, "
    "step, kv, peer, to or from with a number; r3, r3:17; >2ms, <5us";
constexpr std::array<std::string_view, 18> kWords{
    "attend", "send", "receive", "merge", "copy", "finalize", "compute", "backward", "delta",
    "add",    "wait", "rank",    "lane",  "step", "kv",       "peer",    "to",       "from"};

uint32_t bit(OpKind kind) { return 1U << static_cast<uint32_t>(kind); }

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '=' || c == ',') {
      // ">=2ms" is one word.
      if (c == '=' && (word == ">" || word == "<")) {
        word += c;
        continue;
      }
      finish();
    } else {
      word += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
  }
  finish();
  return words;
}

template <typename Integer>
bool read_number(std::string_view text, Integer& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

class QueryReader {
 public:
  explicit QueryReader(std::string_view text) : words_(words_of(text)) {}

  SliceQuery read() {
    for (at_ = 0; at_ < words_.size(); ++at_) read_word(words_[at_]);
    return query_;
  }

 private:
  void read_word(const std::string& word) {
    if (word == "wait") {
      query_.has_waited = true;
    } else if (!read_kind(word) && !read_key(word) && !read_duration(word) && !read_op(word)) {
      const std::string nearest =
          nearest_spelling(word, kWords.data(), static_cast<int>(kWords.size()));
      throw_usage(fmt::format("'{}' means nothing in a search{}", word,
                              nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)),
                  std::string(kAllowed));
    }
  }

  bool read_kind(std::string_view word) {
    for (const OpKind kind : kSearchedKinds) {
      if (word != name(kind)) continue;
      query_.kinds |= bit(kind);
      return true;
    }
    return false;
  }

  bool read_key(const std::string& word) {
    std::optional<int32_t>* target = nullptr;
    if (word == "rank") target = &query_.rank;
    if (word == "lane") target = &query_.lane;
    if (word == "step") target = &query_.step;
    if (word == "kv") target = &query_.kv_shard;
    if (word == "peer" || word == "to" || word == "from") target = &query_.peer;
    if (target == nullptr) return false;
    int32_t number = 0;
    if (at_ + 1 == words_.size() || !read_number(words_[at_ + 1], number)) {
      throw_usage(fmt::format("'{}' needs a number", word), fmt::format("as in: {} 3", word));
    }
    ++at_;
    *target = number;
    if (word == "to") query_.kinds |= bit(OpKind::kSend);
    if (word == "from") query_.kinds |= bit(OpKind::kReceive);
    return true;
  }

  bool read_duration(const std::string& word) {
    if (word.front() != '<' && word.front() != '>') return false;
    const bool has_equal = word.size() > 1 && word[1] == '=';
    std::string time = word.substr(has_equal ? 2 : 1);
    if (at_ + 1 < words_.size() && (time.empty() || std::isdigit(time.back()) != 0)) {
      time += words_[++at_];  // "> 2ms", ">2 ms"
      if (at_ + 1 < words_.size() && std::isdigit(time.back()) != 0) time += words_[++at_];
    }
    const Picoseconds time_ps = parse_time(time, "the duration");
    if (word.front() == '>') {
      query_.at_least_ps = has_equal ? time_ps : time_ps + 1;
    } else {
      query_.at_most_ps = has_equal ? time_ps : time_ps - 1;
    }
    return true;
  }

  bool read_op(std::string_view word) {
    if (word.size() < 2 || word.front() != 'r') return false;
    const size_t colon = word.find(':');
    int32_t rank = 0;
    int64_t index = 0;
    if (!read_number(word.substr(1, colon == word.npos ? word.npos : colon - 1), rank)) {
      return false;
    }
    if (colon != word.npos) {
      if (!read_number(word.substr(colon + 1), index)) return false;
      query_.op_index = index;
    }
    query_.rank = rank;
    return true;
  }

  std::vector<std::string> words_;
  size_t at_ = 0;
  SliceQuery query_;
};

}  // namespace

bool SliceQuery::matches(const Slice& slice) const {
  const Picoseconds length_ps = slice.end_ps - slice.start_ps;
  return (kinds == 0 || (kinds & bit(slice.kind)) != 0) &&
         (!has_waited || slice.start_ps > slice.posted_ps) && (!rank || slice.op.rank == *rank) &&
         (!lane || slice.lane == *lane) && (!step || slice.step == *step) &&
         (!kv_shard || slice.kv_shard == *kv_shard) && (!peer || slice.peer == *peer) &&
         (!op_index || slice.op.index == *op_index) &&
         (!at_least_ps || length_ps >= *at_least_ps) && (!at_most_ps || length_ps <= *at_most_ps);
}

SliceQuery parse_slice_query(std::string_view text) { return QueryReader(text).read(); }

std::vector<uint32_t> matching_slices(const Timeline& timeline, const SliceQuery& query) {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < timeline.slices.size(); ++i) {
    if (query.matches(timeline.slices[i])) found.push_back(i);
  }
  return found;
}

}  // namespace ring
