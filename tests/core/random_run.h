// RandomRun: programs made at random, with times worked out in the test's own way.
#pragma once

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "core/ring_program.h"
#include "core/timeline.h"

namespace ring::test {

/// A program whose ops were made in a global order, so that it cannot deadlock.
struct RandomRun {
  RingProgram program;
  std::vector<OpId> order;               ///< All ops; a receive right after its send.
  std::vector<Picoseconds> duration_ps;  ///< By place in `order`; of a transfer at its send.
  std::vector<Picoseconds> lag_ps;       ///< Launch gap, likewise.
};

inline RandomRun random_run(uint64_t seed) {
  std::mt19937_64 random(seed * 0x9E3779B97F4A7C15u);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  RandomRun run;
  const int ranks = static_cast<int>(1 + below(5));
  run.program.lanes = static_cast<int>(1 + below(3));
  run.program.rank_programs.resize(static_cast<size_t>(ranks));
  std::vector<OpWriter> writers(static_cast<size_t>(ranks), OpWriter(run.program.lanes));
  std::vector<std::vector<LanePoint>> points(static_cast<size_t>(ranks));
  std::vector<OpBatch> batches(static_cast<size_t>(ranks));
  const auto append = [&](int64_t rank, Op op) {
    const auto r = static_cast<size_t>(rank);
    op.lane = static_cast<int32_t>(below(run.program.lanes));
    op.step = static_cast<int32_t>(below(4));
    op.buffer = static_cast<int32_t>(below(3)) - 1;
    std::vector<LanePoint> deps;
    for (int64_t i = below(3); i > 0 && !points[r].empty(); --i) {
      deps.push_back(points[r][static_cast<size_t>(below(std::ssize(points[r])))]);
    }
    points[r].push_back(writers[r].append(op, deps, batches[r]));
    run.order.push_back({static_cast<int32_t>(rank), std::ssize(batches[r].ops) - 1});
    run.duration_ps.push_back(below(4) == 0 ? 0 : below(1000));
    run.lag_ps.push_back(below(2) == 0 ? 0 : below(50));
  };
  const int64_t length = 1 + below(60);
  for (int64_t i = 0; i < length; ++i) {
    Op op;
    const int64_t rank = below(ranks);
    if (ranks > 1 && below(2) == 0) {
      const int64_t to = (rank + 1 + below(ranks - 1)) % ranks;
      op.kind = OpKind::kSend;
      op.protocol = below(2) == 0 ? Protocol::kEager : Protocol::kRendezvous;
      op.peer = static_cast<int32_t>(to);
      op.message = i;
      op.bytes = 1 + below(1000);
      append(rank, op);
      op.kind = OpKind::kReceive;
      op.protocol = Protocol::kRendezvous;
      op.peer = static_cast<int32_t>(rank);
      append(to, op);
    } else {
      constexpr OpKind kWork[] = {OpKind::kAttend, OpKind::kMerge, OpKind::kCopy, OpKind::kFinalize,
                                  OpKind::kCompute};
      op.kind = kWork[below(5)];
      append(rank, op);
    }
  }
  for (int r = 0; r < ranks; ++r) {
    run.program.rank_programs[static_cast<size_t>(r)].ops =
        std::move(batches[static_cast<size_t>(r)].ops);
    run.program.rank_programs[static_cast<size_t>(r)].deps =
        std::move(batches[static_cast<size_t>(r)].deps);
  }
  return run;
}

/// Times of all ops when each starts as soon as it may; `late` gets `delay_ps` added at its end.
inline Timeline timed(const RandomRun& run, OpId late = {-1, -1}, Picoseconds delay_ps = 0) {
  const RingProgram& program = run.program;
  std::vector<std::vector<Slice>> done(static_cast<size_t>(program.ranks()));
  std::vector<std::vector<std::vector<Picoseconds>>> lane_ends(
      done.size(), std::vector<std::vector<Picoseconds>>(static_cast<size_t>(program.lanes)));
  const auto posted = [&](OpId id) {
    const auto r = static_cast<size_t>(id.rank);
    const Op& op = program.op(id);
    Picoseconds time_ps = 0;
    const auto wait_for = [&](int32_t lane, int64_t position) {
      if (position >= 0) {
        time_ps = std::max(time_ps,
                           lane_ends[r][static_cast<size_t>(lane)][static_cast<size_t>(position)]);
      }
    };
    wait_for(op.lane, op.lane_position - 1);
    for (const LanePoint& dep : program.rank_programs[r].deps_of(op)) {
      wait_for(dep.lane, dep.position);
    }
    return time_ps;
  };
  const auto finish = [&](OpId id, Picoseconds posted_ps, Picoseconds start_ps,
                          Picoseconds end_ps) {
    Slice slice = slice_of(program, id);
    slice.posted_ps = posted_ps;
    slice.start_ps = start_ps;
    slice.end_ps = end_ps;
    const auto r = static_cast<size_t>(id.rank);
    lane_ends[r][static_cast<size_t>(slice.lane)].push_back(end_ps);
    done[r].push_back(slice);
  };
  for (size_t i = 0; i < run.order.size(); ++i) {
    const OpId id = run.order[i];
    const Op& op = program.op(id);
    const Picoseconds ready_ps = posted(id);
    Picoseconds length_ps = run.duration_ps[i] + (id == late ? delay_ps : 0);
    if (op.kind != OpKind::kSend) {
      const Picoseconds start_ps = ready_ps + run.lag_ps[i];
      finish(id, start_ps, start_ps, start_ps + length_ps);
      continue;
    }
    const OpId to = run.order[++i];
    const Picoseconds other_ps = posted(to);
    if (op.protocol == Protocol::kRendezvous) {
      if (to == late) length_ps += delay_ps;
      const Picoseconds start_ps = std::max(ready_ps, other_ps) + run.lag_ps[i - 1];
      finish(id, ready_ps, start_ps, start_ps + length_ps);
      finish(to, other_ps, start_ps, start_ps + length_ps);
    } else {
      const Picoseconds start_ps = ready_ps + run.lag_ps[i - 1];
      finish(id, ready_ps, start_ps, start_ps + length_ps);
      const Picoseconds arrived_ps = std::max(start_ps + length_ps, other_ps);
      finish(to, other_ps, std::min(arrived_ps, std::max(start_ps, other_ps)),
             arrived_ps + (to == late ? delay_ps : 0));
    }
  }
  Timeline timeline;
  timeline.ranks = program.ranks();
  timeline.lanes = program.lanes;
  for (auto& slices : done) {
    timeline.slices.insert(timeline.slices.end(), slices.begin(), slices.end());
  }
  sort_slices(timeline);
  return timeline;
}

/// The same timeline as clocks would have it: every time a little off, order within a slice kept.
inline Timeline with_jitter(Timeline timeline, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto off = [&] { return static_cast<Picoseconds>(random() % 101) - 50; };
  for (Slice& slice : timeline.slices) {
    slice.posted_ps = std::max<Picoseconds>(0, slice.posted_ps + off());
    slice.start_ps = std::max(slice.posted_ps, slice.start_ps + off());
    slice.end_ps = std::max(slice.start_ps, slice.end_ps + off());
  }
  sort_slices(timeline);
  return timeline;
}

/// A part of the slices, as after a crash or a lost buffer of the recorder.
inline Timeline partial(Timeline timeline, uint64_t seed) {
  std::mt19937_64 random(seed);
  const uint64_t kept_of_8 = random() % 9;
  std::erase_if(timeline.slices, [&](const Slice&) { return random() % 8 >= kept_of_8; });
  timeline.is_complete = false;
  return timeline;
}

}  // namespace ring::test
