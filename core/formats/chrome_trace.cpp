#include "core/formats/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "core/formats/file_io.h"
#include "core/formats/json_text.h"
#include "core/formats/timeline_rows.h"

namespace ring {
namespace {

constexpr Picoseconds kPicosecondsPerNanosecond = 1000;

/// Rounds to nanoseconds; monotone, so that bars that do not overlap still do not.
int64_t nanoseconds(Picoseconds time_ps) {
  return (time_ps + kPicosecondsPerNanosecond / 2) / kPicosecondsPerNanosecond;
}

std::string microseconds(int64_t time_ns) {
  return fmt::format("{}.{:03}", time_ns / 1000, time_ns % 1000);
}

/// Where the events of one lane go.
struct Track {
  int pid = 0, tid = 0;
};

/// The send or the receive of a message, with the place of its bar.
struct End {
  Track track;
  int64_t begin_ns = 0, end_ns = 0;
  Bytes bytes = 0;
  int64_t op_index = 0;
  int64_t message = -1;  ///< -1: not known, ends pair in the order of their ops.
};

/// Source and destination.
using RankPair = std::pair<int, int>;
using Ends = std::map<RankPair, std::vector<End>>;

/// Numbers the messages of each pair of ranks where no program has done so.
void number_messages(Ends& ends) {
  for (auto& [pair, list] : ends) {
    std::sort(list.begin(), list.end(),
              [](const End& a, const End& b) { return a.op_index < b.op_index; });
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].message < 0) list[i].message = static_cast<int64_t>(i);
    }
  }
}

class TraceWriter {
 public:
  explicit TraceWriter(std::span<const TraceInput> inputs) : inputs_(inputs) {
    zero_ps_ = std::numeric_limits<Picoseconds>::max();
    for (const TraceInput& input : inputs) {
      rows_.push_back(timeline_rows(*input.timeline));
      for (const TimelineRow& row : rows_.back()) {
        zero_ps_ = std::min(zero_ps_, row.bars.front().begin_ps);
      }
    }
  }

  std::string write() {
    for (size_t i = 0; i < inputs_.size(); ++i) write_timeline(i);
    for (const TraceInput& input : inputs_) write_sampled(input);
    return "{\"traceEvents\":[\n" + events_ + "\n],\"displayTimeUnit\":\"ns\"}\n";
  }

 private:
  template <typename... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    if (!events_.empty()) events_ += ",\n";
    fmt::format_to(std::back_inserter(events_), format, std::forward<Args>(args)...);
  }

  int64_t ns(Picoseconds time_ps) const { return nanoseconds(time_ps - zero_ps_); }

  int pid_of(size_t input, int rank) const {
    return 1 + rank * static_cast<int>(inputs_.size()) + static_cast<int>(input);
  }

  void write_process(size_t input, int rank) {
    const Timeline& timeline = *inputs_[input].timeline;
    std::string label =
        fmt::format("rank {} {}", rank,
                    timeline.origin == TimelineOrigin::kMeasured ? "measured" : "predicted");
    if (inputs_.size() > 1 && !timeline.name.empty()) label += " " + timeline.name;
    if (!timeline.is_complete) label += " (incomplete)";
    const int pid = pid_of(input, rank);
    event(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", pid,
          json_quote(label));
    event(R"({{"ph":"M","pid":{0},"name":"process_sort_index","args":{{"sort_index":{0}}}}})", pid);
  }

  void write_timeline(size_t input) {
    int last_rank = -1;
    for (const TimelineRow& row : rows_[input]) {
      if (row.rank != last_rank) write_process(input, row.rank);
      last_rank = row.rank;
      const Track track{pid_of(input, row.rank), ++threads_};
      event(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})",
            track.pid, track.tid, json_quote(row.label));
      event(
          R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
          track.pid, track.tid, track.tid);
      for (const RowBar& bar : row.bars) write_bar(inputs_[input], bar, track);
    }
    number_messages(sends_);
    number_messages(receives_);
    write_flows();
    write_counters(input);
    sends_.clear();
    receives_.clear();
  }

  void write_bar(const TraceInput& input, const RowBar& bar, const Track& track) {
    const Slice& slice = input.timeline->slices[bar.slice];
    const int64_t begin = ns(bar.begin_ps), end = ns(bar.end_ps);
    const std::string_view kernel =
        input.names == nullptr || bar.is_wait ? std::string_view() : input.names->of(slice.op);
    const std::string_view word = bar.is_wait ? "wait" : name(slice.kind);
    const std::string_view category = kernel.empty()                ? word
                                      : slice.kind == OpKind::kCopy ? "gpu_memcpy"
                                                                    : "kernel";
    event(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{{}}}}})",
          track.pid, track.tid, microseconds(begin), microseconds(end - begin),
          json_quote(kernel.empty() ? word : kernel), category, arguments(input, slice));
    if (bar.is_wait || slice.peer < 0) return;
    const bool is_send = slice.kind == OpKind::kSend;
    if (!is_send && slice.kind != OpKind::kReceive) return;
    const RankPair pair =
        is_send ? RankPair(slice.op.rank, slice.peer) : RankPair(slice.peer, slice.op.rank);
    const int64_t message = input.program != nullptr ? input.program->op(slice.op).message : -1;
    (is_send ? sends_ : receives_)[pair].push_back(
        {track, begin, end, slice.bytes, slice.op.index, message});
  }

  static std::string arguments(const TraceInput& input, const Slice& slice) {
    std::string args = fmt::format(R"("op":"r{}:{}")", slice.op.rank, slice.op.index);
    const auto add = [&](std::string_view key, int64_t value) {
      fmt::format_to(std::back_inserter(args), R"(,"{}":{})", key, value);
    };
    const bool is_send = slice.kind == OpKind::kSend, is_receive = slice.kind == OpKind::kReceive;
    if (slice.bytes != 0) add("bytes", slice.bytes);
    if (input.names != nullptr) {
      add("stream", slice.lane);
      if (slice.bytes != 0)
        args += fmt::format(R"(,"In msg nelems":{},"dtype":"Byte")", slice.bytes);
    }
    if (slice.flops != 0) add("flops", slice.flops);
    if (is_send || is_receive || computes_pairs(slice.kind)) add("step", slice.step);
    if (slice.kv_shard >= 0) add("shard", slice.kv_shard);
    if (is_send || is_receive) {
      add("source", is_send ? slice.op.rank : slice.peer);
      add("destination", is_send ? slice.peer : slice.op.rank);
    }
    if (input.program == nullptr) return args;
    const Op& op = input.program->op(slice.op);
    if (op.message >= 0) add("message", op.message);
    if (op.kv_end > op.kv_begin) {
      fmt::format_to(std::back_inserter(args), R"(,"block":"{}..{}")", op.kv_begin, op.kv_end);
    }
    if (op.buffer != kHomeBuffer) add("buffer", op.buffer);
    return args;
  }

  /// Sends whose receive is not in the timeline, and clocks that say a message came before it went,
  /// have no arrow.
  void write_flows() {
    for (const auto& [pair, sends] : sends_) {
      std::map<int64_t, const End*> receive_of;
      for (const End& receive : receives_[pair]) receive_of.emplace(receive.message, &receive);
      for (const End& send : sends) {
        const auto found = receive_of.find(send.message);
        if (found != receive_of.end()) write_flow(send, *found->second);
      }
    }
  }

  void write_flow(const End& send, const End& receive) {
    const int64_t arrival = std::max(receive.begin_ns, receive.end_ns - 1);
    if (arrival < send.begin_ns) return;
    ++flows_;
    event(R"({{"ph":"s","pid":{},"tid":{},"ts":{},"id":{},"name":"message","cat":"hop"}})",
          send.track.pid, send.track.tid, microseconds(send.begin_ns), flows_);
    event(R"({{"ph":"f","bp":"e","pid":{},"tid":{},"ts":{},"id":{},"name":"message","cat":"hop"}})",
          receive.track.pid, receive.track.tid, microseconds(arrival), flows_);
  }

  /// The bytes per nanosecond, which is GB/s, that flow between two ranks, at every change.
  void write_counters(size_t input) {
    for (const auto& [pair, receives] : receives_) {
      std::vector<RateChange> changes;
      for (const End& receive : receives) {
        if (receive.end_ns <= receive.begin_ns || receive.bytes <= 0) continue;
        const double rate = static_cast<double>(receive.bytes) /
                            static_cast<double>(receive.end_ns - receive.begin_ns);
        changes.push_back({receive.begin_ns, rate, 1});
        changes.push_back({receive.end_ns, -rate, -1});
      }
      write_counter(pid_of(input, pair.first), pair, std::move(changes));
    }
  }

  /// What was sampled before the timeline begins is shown where it begins.
  void write_sampled(const TraceInput& input) {
    if (input.counters.empty()) return;
    int ranks = 0;
    for (const TraceInput& each : inputs_) ranks = std::max(ranks, each.timeline->ranks);
    const int pid = pid_of(0, ranks);
    event(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"devices"}}}})", pid);
    event(R"({{"ph":"M","pid":{0},"name":"process_sort_index","args":{{"sort_index":{0}}}}})", pid);
    const int64_t end = ns(input.timeline->makespan_ps());
    for (const Counter& counter : input.counters) {
      for (size_t i = 0; i < counter.points.size(); ++i) {
        const int64_t at = ns(counter.points[i].time_ps);
        const bool is_over =
            i + 1 < counter.points.size() && ns(counter.points[i + 1].time_ps) <= 0;
        if (is_over || at > end) continue;
        event(R"({{"ph":"C","pid":{},"ts":{},"name":{},"args":{{{}:{:.6g}}}}})", pid,
              microseconds(std::max<int64_t>(at, 0)),
              json_quote(fmt::format("gpu {} {}", counter.device, counter.name)),
              json_quote(counter.unit), counter.points[i].value);
      }
    }
  }

  struct RateChange {
    int64_t at_ns;
    double rate;
    int flows;
  };

  void write_counter(int pid, const RankPair& pair, std::vector<RateChange> changes) {
    std::stable_sort(changes.begin(), changes.end(),
                     [](const RateChange& a, const RateChange& b) { return a.at_ns < b.at_ns; });
    double rate = 0;
    int flows = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      flows += changes[i].flows;
      rate = flows == 0 ? 0 : rate + changes[i].rate;
      if (i + 1 < changes.size() && changes[i + 1].at_ns == changes[i].at_ns) continue;
      event(R"({{"ph":"C","pid":{},"ts":{},"name":"link {} to {}","args":{{"GB/s":{:.6g}}}}})", pid,
            microseconds(changes[i].at_ns), pair.first, pair.second, std::max(rate, 0.0));
    }
  }

  std::span<const TraceInput> inputs_;
  std::vector<std::vector<TimelineRow>> rows_;  ///< Of each input.
  Picoseconds zero_ps_ = 0;
  std::string events_;
  int threads_ = 0;
  int64_t flows_ = 0;
  Ends sends_, receives_;
};

}  // namespace

std::string chrome_trace(std::span<const TraceInput> inputs) { return TraceWriter(inputs).write(); }

void write_chrome_trace(const std::string& path, std::span<const TraceInput> inputs) {
  write_file(path, chrome_trace(inputs));
}

}  // namespace ring
