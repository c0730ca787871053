#include "kernels/probe_collector.h"

#include <cmath>
#include <numeric>

#include "core/error.h"

namespace ring {
namespace {

/// Ops that would cost the same with one cache size and not with another have different counts.
constexpr double kAnyCacheBytes = 1;

/// Op noise is judged from at most this many values a run: more tell nothing new.
constexpr size_t kMostNoiseValues = 64;

CalibrationSample attend_sample(const ProbeProgram& probe, const Op& op) {
  const Problem& problem = probe.program.problem;
  CalibrationSample sample;
  sample.probe = op.kind == OpKind::kBackward           ? "backward"
                 : probe.kind == ProbeKind::kContention ? "attend-all-cores"
                                                        : probe.attend;
  sample.is_held_out = probe.is_held_out;
  sample.labels = {{"dtype", std::string(name(problem.dtype))}, {"mask", problem.mask.kind()}};
  const auto put = [&sample](const char* quantity, int64_t value) {
    sample.quantities[quantity] = static_cast<double>(value);
  };
  put("query_rows", op.q_end - op.q_begin);
  put("active_rows", op.active_rows);
  put("edge_rows", op.edge_rows);
  put("visible_pairs", op.visible_pairs);
  put("block_tokens", op.kv_end - op.kv_begin);
  put("heads", problem.heads);
  put("kv_heads", problem.kv_heads);
  put("head_dim", problem.head_dim);
  put("head_dim_v", problem.head_dim_v);
  put("starts_state", op.starts_state ? 1 : 0);
  return sample;
}

CalibrationSample byte_sample(std::string_view probe, Bytes bytes, bool is_held_out) {
  CalibrationSample sample;
  sample.probe = probe;
  sample.quantities["bytes"] = static_cast<double>(bytes);
  sample.is_held_out = is_held_out;
  return sample;
}

}  // namespace

ProbeCollector::ProbeCollector(const ProbeProgram& probe) : probe_(probe) {
  for (const RankProgram& rank : probe.program.rank_programs) {
    sample_of_op_.emplace_back();
    for (const Op& op : rank.ops) sample_of_op_.back().push_back(sample_for(op));
  }
  values_.resize(samples_.size());
}

int32_t ProbeCollector::sample_for(const Op& op) {
  const Problem& problem = probe_.program.problem;
  ProbeSample next;
  switch (op.kind) {
    case OpKind::kAttend:
    case OpKind::kBackward:
      // Where gradients travel, ranks on other cores disturb the computation.
      if (probe_.kind == ProbeKind::kGradients || probe_.attend.empty()) return -1;
      // Later steps have their keys, and nothing travels any more.
      if (probe_.kind == ProbeKind::kOverlap && op.step > 0) return -1;
      next.sample = attend_sample(probe_, op);
      next.features = attend_features(problem, op, kAnyCacheBytes);
      next.problem = &problem;
      next.op = &op;
      break;
    case OpKind::kAdd:
    case OpKind::kDelta:
      if ((op.kind == OpKind::kAdd) != (probe_.kind == ProbeKind::kGradients)) return -1;
      next.sample = byte_sample(name(op.kind), op.bytes, false);
      next.features = {1, static_cast<double>(op.bytes)};
      break;
    case OpKind::kMerge:
    case OpKind::kFinalize:
      if (op.bytes == 0) return -1;
      next.sample = byte_sample(name(op.kind), op.bytes, false);
      next.features = {1, static_cast<double>(op.bytes)};
      break;
    case OpKind::kReceive:
      if (probe_.kind == ProbeKind::kGradients || probe_.transfer.empty()) return -1;
      next.sample = byte_sample(probe_.kind == ProbeKind::kWakeup ? "wakeup" : probe_.transfer,
                                op.bytes, false);
      next.features = {1, static_cast<double>(op.bytes)};
      break;
    case OpKind::kCompute:
      if (probe_.kind != ProbeKind::kHandover || op.lane == 0) return -1;
      next.sample = byte_sample("wakeup", 0, false);
      next.features = {1};
      break;
    case OpKind::kSend:
    case OpKind::kCopy:
      return -1;
  }
  std::vector<double> key = next.features;
  key.push_back(static_cast<double>(op.kind));
  const auto [it, is_new] = by_key_.try_emplace(key, static_cast<int32_t>(samples_.size()));
  if (is_new) samples_.push_back(std::move(next));
  return it->second;
}

void ProbeCollector::add_run(const Timeline& timeline) {
  for (std::vector<double>& values : values_) values.clear();
  std::map<int64_t, Picoseconds> posted;  // Sends by message.
  for (const Slice& slice : timeline.slices) {
    const Op& op = probe_.program.op(slice.op);
    if (op.kind == OpKind::kSend) posted[op.message] = slice.posted_ps;
  }
  std::map<int64_t, Picoseconds> ends;  // Of rank 0, by op.
  for (const Slice& slice : timeline.slices) {
    if (slice.op.rank == 0) ends[slice.op.index] = slice.end_ps;
  }
  for (const Slice& slice : timeline.slices) {
    const auto rank = static_cast<size_t>(slice.op.rank);
    const int32_t sample = sample_of_op_[rank][static_cast<size_t>(slice.op.index)];
    if (sample < 0) continue;
    Picoseconds begin_ps = slice.start_ps, end_ps = slice.end_ps;
    if (probe_.kind == ProbeKind::kWakeup) {
      const Picoseconds sent_ps = posted.at(probe_.program.op(slice.op).message);
      if (sent_ps < slice.posted_ps) continue;  // The receiver came late: nobody was woken.
      begin_ps = sent_ps;
      end_ps = slice.start_ps;
    }
    if (probe_.kind == ProbeKind::kHandover) {
      begin_ps = ends.at(slice.op.index - 1);  // What it waits for stands before it.
      end_ps = slice.start_ps;
    }
    add_value(sample, seconds_from_picoseconds(end_ps - begin_ps));
  }
  for (size_t i = 0; i < samples_.size(); ++i) {
    const std::vector<double>& values = values_[i];
    if (values.empty()) continue;
    const double mean =
        std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    const bool is_wakeup = probe_.kind == ProbeKind::kWakeup || probe_.kind == ProbeKind::kHandover;
    samples_[i].sample.seconds.push_back(is_wakeup ? median(values) : mean);
    const std::string& kind = samples_[i].sample.probe;
    if ((kind != "attend" && kind != "backward") || values.size() < 3) continue;
    for (size_t j = 0; j < std::min(values.size(), kMostNoiseValues); ++j)
      op_noise_.push_back(std::log(values[j] / mean));
  }
  makespans_.push_back(seconds_from_picoseconds(timeline.makespan_ps()));
}

void ProbeCollector::add_value(int32_t sample, double seconds) {
  values_[static_cast<size_t>(sample)].push_back(std::max(seconds, 1e-9));
}

}  // namespace ring
