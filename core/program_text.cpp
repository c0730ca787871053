#include "core/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "core/error.h"

namespace ring {
namespace {

constexpr std::array kKinds = {
    OpKind::kAttend, OpKind::kSend,    OpKind::kReceive,  OpKind::kMerge, OpKind::kFinalize,
    OpKind::kCopy,   OpKind::kCompute, OpKind::kBackward, OpKind::kDelta, OpKind::kAdd};
constexpr std::array kPayloads = {
    Payload::kKeyValue,       Payload::kQuery,          Payload::kPartial,
    Payload::kOutput,         Payload::kQuerySide,      Payload::kKeyGradients,
    Payload::kQueryGradients, Payload::kOutputGradient, Payload::kState};

std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

/// A message that may quote a binary file.
std::string legible(std::string_view message) {
  constexpr size_t kMostBytes = 160;
  std::string text(message.substr(0, kMostBytes));
  for (char& letter : text) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return message.size() > kMostBytes ? text + "..." : text;
}

class Reader {
 public:
  RingProgram read(std::string_view text) {
    most_lanes_ = std::min<int64_t>(1 << 24, (1 << 16) + std::ssize(text));
    while (!text.empty()) {
      const size_t end = text.find('\n');
      ++line_;
      read_line(words_of(text.substr(0, end)));
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    line_ = std::max<decltype(line_)>(line_, 1);
    if (program_.rank_programs.empty()) refuse("no 'ranks N' line");
    for (size_t rank = 0; rank < batches_.size(); ++rank) {
      program_.rank_programs[rank].ops = std::move(batches_[rank].ops);
      program_.rank_programs[rank].deps = std::move(batches_[rank].deps);
    }
    return std::move(program_);
  }

 private:
  [[noreturn]] void refuse(const std::string& message, std::string hint = {}) const {
    throw_usage(fmt::format("program line {}: {}", line_, legible(message)), std::move(hint));
  }

  int64_t integer(std::string_view text, std::string_view what) const {
    int64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      refuse(fmt::format("{} '{}' is not an integer", what, text));
    }
    return value;
  }

  int32_t small(std::string_view text, std::string_view what, int64_t low, int64_t high) const {
    const int64_t value = integer(text, what);
    if (value < low || value > high) {
      refuse(fmt::format("{} {} is not in {} .. {}", what, value, low, high));
    }
    return static_cast<int32_t>(value);
  }

  void read_line(const std::vector<std::string_view>& words) {
    if (words.empty()) return;
    if (words[0] == "ranks" && words.size() == 2) {
      if (!program_.rank_programs.empty()) refuse("'ranks' stands twice");
      program_.rank_programs.resize(static_cast<size_t>(small(words[1], "ranks", 1, most_lanes_)));
    } else if (words[0] == "lanes" && words.size() == 2) {
      if (!batches_.empty()) refuse("'lanes' must stand before the first op");
      program_.lanes = small(words[1], "lanes", 1, 1 << 16);
    } else if (words[0] == "buffers" && words.size() == 2) {
      buffers_ = small(words[1], "buffers", 0, 1 << 24);
      for (RankProgram& rank : program_.rank_programs) rank.storage.buffers = buffers_;
    } else if (words[0].starts_with('r') && words.size() >= 3) {
      read_op(words);
    } else {
      refuse(fmt::format("'{}' starts no line", words[0]),
             "allowed: 'ranks N', 'lanes N', 'buffers N', 'rRANK LLANE KIND key=value...'");
    }
  }

  void start_ops() {
    if (program_.rank_programs.empty()) refuse("an op stands before 'ranks N'");
    if (!batches_.empty()) return;
    if (int64_t{program_.ranks()} * program_.lanes > most_lanes_) {
      refuse(fmt::format("{} ranks of {} lanes are more than {} lanes in all", program_.ranks(),
                         program_.lanes, most_lanes_),
             "a file this short has no ops for them");
    }
    batches_.resize(program_.rank_programs.size());
    writers_.assign(program_.rank_programs.size(), OpWriter(program_.lanes));
    points_.resize(program_.rank_programs.size());
  }

  void read_op(const std::vector<std::string_view>& words) {
    start_ops();
    const int32_t rank = small(words[0].substr(1), "rank", 0, program_.ranks() - 1);
    Op op;
    if (!words[1].starts_with('L')) refuse(fmt::format("'{}' is no lane", words[1]), "write L0");
    op.lane = small(words[1].substr(1), "lane", 0, program_.lanes - 1);
    op.kind = kind_of(words[2]);
    op.q_shard = op.kind == OpKind::kAttend ? rank : -1;
    std::vector<LanePoint> deps;
    for (size_t i = 3; i < words.size(); ++i) read_field(words[i], rank, op, deps);
    const auto at = static_cast<size_t>(rank);
    points_[at].push_back(writers_[at].append(op, deps, batches_[at]));
  }

  OpKind kind_of(std::string_view word) const {
    std::string names;
    for (const OpKind kind : kKinds) {
      if (word == name(kind)) return kind;
      names += (names.empty() ? "" : ", ") + std::string(name(kind));
    }
    refuse(fmt::format("'{}' is no kind of op", word), "allowed: " + names);
  }

  Payload payload_of(std::string_view word) const {
    std::string names;
    for (const Payload payload : kPayloads) {
      if (word == name(payload)) return payload;
      names += (names.empty() ? "" : ", ") + std::string(name(payload));
    }
    refuse(fmt::format("'{}' is no payload", word), "allowed: " + names);
  }

  int32_t gradient_or_state(std::string_view value, std::string_view key, const Op& op) const {
    const bool is_gradient_op =
        op.kind == OpKind::kBackward || op.kind == OpKind::kAdd || op.kind == OpKind::kDelta;
    if (is_gradient_op && value == "home") return kHomeBuffer;
    return small(value, key, 0, int64_t{1} << 30);
  }

  void read_range(std::string_view value, std::string_view key, int64_t& begin,
                  int64_t& end) const {
    const size_t dots = value.find("..");
    if (dots == std::string_view::npos)
      refuse(fmt::format("{} '{}' is no range", key, value), "write it like 0..64");
    begin = integer(value.substr(0, dots), key);
    end = integer(value.substr(dots + 2), key);
    if (begin < 0 || end < begin) refuse(fmt::format("{} '{}' runs backwards", key, value));
  }

  void read_deps(std::string_view value, int32_t rank, std::vector<LanePoint>& deps) const {
    const std::string prefix = fmt::format("r{}:", rank);
    const auto& points = points_[static_cast<size_t>(rank)];
    while (true) {
      const size_t comma = value.find(',');
      const std::string_view id = value.substr(0, comma);
      if (!id.starts_with(prefix)) {
        refuse(fmt::format("'{}' is no op of the same rank", id),
               "ops wait for other ranks through send and receive only");
      }
      const int64_t index = integer(id.substr(prefix.size()), "op");
      if (index < 0 || static_cast<size_t>(index) >= points.size()) {
        refuse(fmt::format("op '{}' does not stand before this one", id));
      }
      deps.push_back(points[static_cast<size_t>(index)]);
      if (comma == std::string_view::npos) return;
      value.remove_prefix(comma + 1);
    }
  }

  void read_field(std::string_view word, int32_t rank, Op& op, std::vector<LanePoint>& deps) const {
    if (word == "eager" && op.kind == OpKind::kSend) {
      op.protocol = Protocol::kEager;
      return;
    }
    if (word == "naive" && op.kind == OpKind::kAttend) {
      op.method = AttendMethod::kNaive;
      return;
    }
    if (word == "start") {
      op.starts_state = true;
      return;
    }
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) refuse(fmt::format("'{}' is no key=value", word));
    const std::string_view key = word.substr(0, equals), value = word.substr(equals + 1);
    constexpr int64_t kLarge = int64_t{1} << 30;
    if (key == "after") {
      read_deps(value, rank, deps);
    } else if ((key == "to" && op.kind == OpKind::kSend) ||
               (key == "from" && op.kind == OpKind::kReceive)) {
      op.peer = small(value, key, 0, program_.ranks() - 1);
    } else if (key == "msg") {
      op.message = integer(value, key);
    } else if (key == "bytes") {
      op.bytes = integer(value, key);
      if (op.bytes < 0) refuse("bytes is negative");
    } else if (key == "time") {
      op.fixed_ps = parse_time(value, fmt::format("program line {}: time", line_));
      if (op.fixed_ps < 0) refuse("time is negative");
    } else if (key == "step") {
      op.step = small(value, key, 0, kLarge);
    } else if (key == "buffer") {
      op.buffer = value == "home" ? kHomeBuffer : small(value, key, 0, kLarge);
    } else if (key == "at") {
      op.buffer_begin = integer(value, key);
    } else if (key == "payload") {
      op.payload = payload_of(value);
    } else if (key == "micro") {
      op.micro_step = small(value, key, 0, kLarge);
    } else if (key == "shard") {
      op.kv_shard = small(value, key, 0, program_.ranks() - 1);
    } else if (key == "qbuffer") {
      op.q_buffer = value == "home" ? kHomeBuffer : small(value, key, 0, kLarge);
    } else if (key == "qat") {
      op.q_at = integer(value, key);
    } else if (key == "fromBuffer") {
      op.source_buffer = value == "home" ? kHomeBuffer : small(value, key, 0, kLarge);
    } else if (key == "fromOrder") {
      op.source_order = small(value, key, 0, kLarge);
    } else if (key == "order") {
      op.target_order = small(value, key, 0, kLarge);
    } else if (key == "kv") {
      read_range(value, key, op.kv_begin, op.kv_end);
    } else if (key == "qshard") {
      op.q_shard = small(value, key, 0, program_.ranks() - 1);
    } else if (key == "q") {
      read_range(value, key, op.q_begin, op.q_end);
    } else if (key == "heads") {
      int64_t begin = 0, end = 0;
      read_range(value, key, begin, end);
      op.head_begin = small(value.substr(0, value.find("..")), key, 0, kLarge);
      op.head_end = static_cast<int32_t>(end);
    } else if (key == "state") {
      op.state = gradient_or_state(value, key, op);
    } else if (key == "source") {
      op.source_state = small(value, key, 0, kLarge);
    } else if (key == "pairs") {
      op.visible_pairs = integer(value, key);
    } else if (key == "rows") {
      op.active_rows = integer(value, key);
    } else if (key == "edges") {
      op.edge_rows = integer(value, key);
    } else if (key == "flops") {
      op.flops = integer(value, key);
    } else {
      refuse(fmt::format("key '{}' is not known for {}", key, name(op.kind)),
             "allowed: after, to, from, msg, bytes, time, step, buffer, at, shard, kv, qshard, q, "
             "heads, state, source, pairs, rows, edges, flops, payload, micro, qbuffer, qat, "
             "fromBuffer, fromOrder, order");
    }
  }

  int line_ = 0;
  int64_t most_lanes_ = 0;  ///< Of all ranks: no file states more than it has room to give work to.
  int32_t buffers_ = 0;
  RingProgram program_;
  std::vector<OpBatch> batches_;
  std::vector<OpWriter> writers_;
  std::vector<std::vector<LanePoint>> points_;
};

std::string op_text(const Op& op, int rank) {
  std::string text = fmt::format("r{} L{} {}", rank, op.lane, name(op.kind));
  const auto add = [&text](std::string_view key, const auto& value) {
    text += fmt::format(" {}={}", key, value);
  };
  if (op.protocol == Protocol::kEager) text += " eager";
  if (op.starts_state) text += " start";
  if (op.method == AttendMethod::kNaive) text += " naive";
  if (op.payload != Payload::kKeyValue) add("payload", name(op.payload));
  if (op.peer >= 0) add(op.kind == OpKind::kSend ? "to" : "from", op.peer);
  if (op.message >= 0) add("msg", op.message);
  if (op.bytes != 0) add("bytes", op.bytes);
  if (op.fixed_ps != 0) add("time", exact_time(op.fixed_ps));
  if (op.step != 0) add("step", op.step);
  if (op.buffer != kHomeBuffer) add("buffer", op.buffer);
  if (op.buffer_begin != 0) add("at", op.buffer_begin);
  if (op.kv_shard >= 0) add("shard", op.kv_shard);
  if (op.kv_end != 0) add("kv", fmt::format("{}..{}", op.kv_begin, op.kv_end));
  if (op.q_shard >= 0 && !(op.kind == OpKind::kAttend && op.q_shard == rank)) {
    add("qshard", op.q_shard);
  }
  if (op.q_buffer != kHomeBuffer) add("qbuffer", op.q_buffer);
  if (op.q_at != 0) add("qat", op.q_at);
  if (op.source_buffer != kHomeBuffer) add("fromBuffer", op.source_buffer);
  if (op.source_order >= 0) add("fromOrder", op.source_order);
  if (op.target_order >= 0) add("order", op.target_order);
  if (op.q_end != 0) add("q", fmt::format("{}..{}", op.q_begin, op.q_end));
  if (op.head_end != 0) add("heads", fmt::format("{}..{}", op.head_begin, op.head_end));
  if (op.micro_step != 0) add("micro", op.micro_step);
  if (op.state == kHomeBuffer) {
    add("state", "home");
  } else if (op.state != 0) {
    add("state", op.state);
  }
  if (op.source_state >= 0) add("source", op.source_state);
  if (op.visible_pairs != 0) add("pairs", op.visible_pairs);
  if (op.active_rows != 0) add("rows", op.active_rows);
  if (op.edge_rows != 0) add("edges", op.edge_rows);
  if (op.flops != 0) add("flops", op.flops);
  return text;
}

}  // namespace

RingProgram parse_program(std::string_view text) { return Reader().read(text); }

std::string program_text(const RingProgram& program) {
  std::string text = fmt::format("ranks {}\nlanes {}\n", program.ranks(), program.lanes);
  if (program.ranks() > 0 && program.rank_programs[0].storage.buffers > 0) {
    text += fmt::format("buffers {}\n", program.rank_programs[0].storage.buffers);
  }
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const RankProgram& ops = program.rank_programs[static_cast<size_t>(rank)];
    std::map<std::pair<int32_t, int64_t>, size_t> index_of;
    for (size_t i = 0; i < ops.ops.size(); ++i) {
      const Op& op = ops.ops[i];
      index_of[{op.lane, op.lane_position}] = i;
      text += op_text(op, rank);
      std::string separator = " after=";
      for (const LanePoint& dep : ops.deps_of(op)) {
        text += fmt::format("{}r{}:{}", separator, rank, index_of.at({dep.lane, dep.position}));
        separator = ",";
      }
      text += '\n';
    }
  }
  return text;
}

}  // namespace ring
