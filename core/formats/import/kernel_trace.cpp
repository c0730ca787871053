#include "core/formats/import/kernel_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/import/text_lines.h"
#include "core/formats/import/trace_events.h"

namespace ring {
namespace {

constexpr size_t kMostSlices = 20'000'000;

/// Kernels of NCCL and RCCL, and only they, are called so.
bool is_communication_kernel(std::string_view name) {
  const std::string low = lower(name);
  return contains(low, "nccl") || contains(low, "rccl");
}

int64_t bytes_of_dtype(std::string_view type) {
  const std::string low = lower(type);
  if (low == "float" || low == "int") return 4;
  if (low == "double" || low == "long") return 8;
  if (low == "half" || low == "bfloat16" || low == "short") return 2;
  if (low == "byte" || low == "char" || low == "bool") return 1;
  return 0;
}

class TraceCollector {
 public:
  explicit TraceCollector(const std::string& file) : file_(file) {}

  void take(const TraceEvent& event) {
    ++events_;
    const std::string category = lower(event.category);
    if (event.name.starts_with("nccl:") &&
        (category == "cpu_op" || category == "user_annotation")) {
      ++trace_.collectives[event.name];
    }
    const bool is_kernel = category == "kernel";
    const bool is_copy = category == "gpu_memcpy" || category == "gpu_memset";
    if (event.phase == "X" && (category == "attend" || category == "send")) {
      trace_.is_of_ring_program = true;
    }
    if (event.phase != "X" || (!is_kernel && !is_copy)) return;
    if (event.begin_ns < 0 || event.duration_ns < 0) {
      ++unreadable_;
      return;
    }
    if (event.begin_ns > INT64_MAX - event.duration_ns) {
      throw_usage(fmt::format("{}: a kernel ends beyond 64 bits of nanoseconds", file_));
    }
    if (trace_.slices.size() >= kMostSlices) {
      throw_usage(fmt::format("{}: more than {} kernels", file_, kMostSlices));
    }
    KernelSlice slice;
    slice.begin_ns = event.begin_ns;
    slice.end_ns = event.begin_ns + event.duration_ns;
    slice.name = number_of_name(event.name);
    slice.device = static_cast<int32_t>(std::clamp<int64_t>(event.device, 0, 1 << 20));
    slice.stream = event.stream;
    slice.is_copy = is_copy;
    slice.is_communication = is_kernel && is_communication_kernel(event.name);
    if (slice.is_communication && event.elements > 0) {
      slice.elements = event.elements;
      slice.element_bytes = bytes_of_dtype(event.element_type);
    }
    trace_.slices.push_back(slice);
  }

  KernelTrace finish(const TraceHeader& header) {
    trace_.rank = static_cast<int>(std::clamp<int64_t>(header.rank, -1, 1 << 30));
    trace_.world_size = static_cast<int>(std::clamp<int64_t>(header.world_size, 0, 1 << 30));
    trace_.listed_devices = static_cast<int>(std::min<int64_t>(header.devices, 1 << 30));
    trace_.sms = static_cast<int>(std::clamp<int64_t>(header.sms, 0, 1 << 20));
    trace_.device_name = header.device_name;
    std::sort(trace_.slices.begin(), trace_.slices.end(),
              [](const KernelSlice& a, const KernelSlice& b) {
                return std::tuple(a.begin_ns, a.end_ns, a.device, a.stream, a.name) <
                       std::tuple(b.begin_ns, b.end_ns, b.device, b.stream, b.name);
              });
    const int64_t zero = trace_.slices.empty() ? 0 : trace_.slices.front().begin_ns;
    for (KernelSlice& slice : trace_.slices) {
      slice.begin_ns -= zero;
      slice.end_ns -= zero;
    }
    describe();
    return std::move(trace_);
  }

 private:
  int32_t number_of_name(const std::string& name) {
    const auto [at, is_new] = numbers_.emplace(name, static_cast<int32_t>(trace_.names.size()));
    if (is_new) trace_.names.push_back(name);
    return at->second;
  }

  void add(FindingKind kind, std::string text) {
    trace_.findings.push_back({kind, std::move(text), 0});
  }

  void describe() {
    const KernelTotals totals = totals_of(trace_);
    const auto us = [](int64_t ns) { return static_cast<double>(ns) / 1000; };
    add(FindingKind::kFound, fmt::format("{} events, {} kernels, {} of them communication", events_,
                                         totals.kernels, totals.communication_kernels));
    add(FindingKind::kFound,
        fmt::format("communication {:.3f} us, computation {:.3f} us, both at once {:.3f} us",
                    us(totals.communication_ns), us(totals.compute_ns), us(totals.overlap_ns)));
    describe_rank();
    if (trace_.device_name.empty()) {
      add(FindingKind::kUnknown, "the GPU model");
    } else {
      add(FindingKind::kFound, fmt::format("{} with {} SMs, {} listed", trace_.device_name,
                                           trace_.sms, trace_.listed_devices));
    }
    describe_collectives(totals);
    if (unreadable_ > 0) {
      add(FindingKind::kIgnored, fmt::format("{} kernels without readable times", unreadable_));
    }
  }

  void describe_collectives(const KernelTotals& totals) {
    if (totals.communication_kernels == 0) return;
    std::string calls;
    for (const auto& [name, count] : trace_.collectives) {
      calls += fmt::format("{}{} x {}", calls.empty() ? "" : ", ", count, name);
    }
    if (calls.empty()) {
      add(FindingKind::kUnknown, "which calls the communication kernels come from");
    } else {
      add(FindingKind::kFound, "the host called " + calls);
    }
    const bool has_send_receive =
        std::any_of(trace_.names.begin(), trace_.names.end(),
                    [](const std::string& name) { return contains(name, "SendRecv"); });
    if (has_send_receive) {
      add(FindingKind::kUnknown,
          "whether SendRecv kernels are hops of a ring: all-to-all uses the same kernels");
    }
  }

  void describe_rank() {
    if (trace_.rank < 0) {
      add(FindingKind::kUnknown, "which rank of how many it is");
    } else if (trace_.world_size == 0) {
      add(FindingKind::kFound, fmt::format("rank {}", trace_.rank));
      add(FindingKind::kUnknown, "of how many ranks");
    } else {
      add(FindingKind::kFound, fmt::format("rank {} of {}; the others are in traces of their own",
                                           trace_.rank, trace_.world_size));
    }
  }

  const std::string& file_;
  KernelTrace trace_;
  std::unordered_map<std::string, int32_t> numbers_;  ///< Looked up, never walked through.
  int64_t events_ = 0, unreadable_ = 0;
};

struct Interval {
  int64_t begin, end;
};

/// Merged, in order.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> out;
  for (const Interval& interval : intervals) {
    if (!out.empty() && interval.begin <= out.back().end) {
      out.back().end = std::max(out.back().end, interval.end);
    } else {
      out.push_back(interval);
    }
  }
  return out;
}

int64_t length(const std::vector<Interval>& intervals) {
  int64_t total = 0;
  for (const Interval& interval : intervals) total += interval.end - interval.begin;
  return total;
}

OpKind kind_of(const KernelTrace& trace, const KernelSlice& slice) {
  if (slice.is_copy) return OpKind::kCopy;
  if (slice.is_communication) return OpKind::kReceive;
  const std::string name = lower(trace.names[static_cast<size_t>(slice.name)]);
  const bool is_attention =
      contains(name, "flash") || contains(name, "fmha") || contains(name, "attention");
  return is_attention ? OpKind::kAttend : OpKind::kCompute;
}

}  // namespace

KernelTotals totals_of(const KernelTrace& trace) {
  std::vector<Interval> communication, compute, all;
  KernelTotals totals;
  for (const KernelSlice& slice : trace.slices) {
    if (slice.is_copy) continue;
    ++totals.kernels;
    totals.communication_kernels += slice.is_communication ? 1 : 0;
    (slice.is_communication ? communication : compute).push_back({slice.begin_ns, slice.end_ns});
    all.push_back({slice.begin_ns, slice.end_ns});
  }
  totals.communication_ns = length(merged(std::move(communication)));
  totals.compute_ns = length(merged(std::move(compute)));
  totals.busy_ns = length(merged(std::move(all)));
  totals.overlap_ns = totals.communication_ns + totals.compute_ns - totals.busy_ns;
  return totals;
}

KernelTrace parse_kernel_trace(std::istream& input, const std::string& file) {
  TraceCollector collector(file);
  const TraceHeader header =
      read_trace_events(input, file, [&](const TraceEvent& event) { collector.take(event); });
  return collector.finish(header);
}

KernelTrace read_kernel_trace(const std::string& path) {
  const auto input = open_input(path);
  return parse_kernel_trace(*input, path);
}

Timeline timeline_of(const KernelTrace& trace) {
  Timeline timeline;
  timeline.origin = TimelineOrigin::kMeasured;
  timeline.ranks = 1;
  std::map<std::pair<int32_t, int64_t>, int32_t> lanes;
  for (const KernelSlice& slice : trace.slices) lanes[{slice.device, slice.stream}] = 0;
  for (auto& [key, lane] : lanes) lane = timeline.lanes++;
  int64_t index = 0;
  for (const KernelSlice& kernel : trace.slices) {
    Slice slice;
    slice.op = {0, index++};
    slice.kind = kind_of(trace, kernel);
    slice.lane = lanes.at({kernel.device, kernel.stream});
    slice.bytes = checked_multiply(kernel.elements, kernel.element_bytes, "bytes of a collective");
    slice.start_ps = checked_multiply(kernel.begin_ns, 1000, "time of a kernel");
    slice.end_ps = checked_multiply(kernel.end_ns, 1000, "time of a kernel");
    slice.posted_ps = slice.start_ps;
    timeline.slices.push_back(slice);
  }
  sort_slices(timeline);
  return timeline;
}

}  // namespace ring
