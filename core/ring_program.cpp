#include "core/ring_program.h"

#include <fmt/format.h>

#include "core/error.h"

namespace ring {

std::string_view name(OpKind kind) {
  switch (kind) {
    case OpKind::kAttend:
      return "attend";
    case OpKind::kSend:
      return "send";
    case OpKind::kReceive:
      return "receive";
    case OpKind::kMerge:
      return "merge";
    case OpKind::kCopy:
      return "copy";
    case OpKind::kFinalize:
      return "finalize";
    case OpKind::kCompute:
      return "compute";
    case OpKind::kBackward:
      return "backward";
    case OpKind::kDelta:
      return "delta";
    case OpKind::kAdd:
      return "add";
  }
  return "?";
}

std::string_view name(Payload payload) {
  switch (payload) {
    case Payload::kKeyValue:
      return "kv";
    case Payload::kQuery:
      return "query";
    case Payload::kPartial:
      return "partial";
    case Payload::kOutput:
      return "output";
    case Payload::kQuerySide:
      return "query-side";
    case Payload::kKeyGradients:
      return "key-gradients";
    case Payload::kQueryGradients:
      return "query-gradients";
    case Payload::kOutputGradient:
      return "output-gradient";
    case Payload::kState:
      return "state";
  }
  return "?";
}

std::string_view name(Protocol protocol) {
  switch (protocol) {
    case Protocol::kRendezvous:
      return "rendezvous";
    case Protocol::kEager:
      return "eager";
  }
  return "?";
}

int64_t RingProgram::op_count() const {
  int64_t count = 0;
  for (const RankProgram& rank : rank_programs) count += static_cast<int64_t>(rank.ops.size());
  return count;
}

LanePoint OpWriter::append(const Op& op, std::span<const LanePoint> deps, OpBatch& batch) {
  RING_ASSERT(op.lane >= 0 && static_cast<size_t>(op.lane) < next_position_.size());
  batch.ops.push_back(op);
  Op& added = batch.ops.back();
  added.lane_position = next_position_[static_cast<size_t>(added.lane)]++;
  added.dep_begin = static_cast<int64_t>(batch.deps.size());
  added.dep_count = 0;
  for (const LanePoint& dep : deps) {
    if (dep.lane == added.lane) continue;  // The lane itself is in order.
    batch.deps.push_back(dep);
    ++added.dep_count;
  }
  return {added.lane, added.lane_position};
}

RingProgram materialize(const ProgramSource& source) {
  constexpr size_t kMostOps = 16'000'000;  // Some 5 GB.
  size_t ops = 0;
  RingProgram program;
  program.lanes = source.lanes();
  for (int rank = 0; rank < source.ranks(); ++rank) {
    OpBatch batch;
    const auto stream = source.stream(rank);
    while (ops + batch.ops.size() <= kMostOps && stream->next(batch)) {
    }
    ops += batch.ops.size();
    if (ops > kMostOps) {
      throw_usage(fmt::format("the program has more than {} ops, too many to keep", kMostOps),
                  "choose larger blocks or fewer ranks");
    }
    program.rank_programs.push_back(
        {std::move(batch.ops), std::move(batch.deps), source.storage(rank)});
  }
  program.groups = source.groups();
  program.skips_pairs = source.skips_pairs();
  return program;
}

namespace {

class MaterializedStream : public RankStream {
 public:
  explicit MaterializedStream(const RankProgram& program) : program_(program) {}

  bool next(OpBatch& batch) override {
    if (next_ == program_.ops.size()) return false;
    const size_t end = std::min(next_ + kOpsPerBatch, program_.ops.size());
    for (; next_ < end; ++next_) {
      Op op = program_.ops[next_];
      const auto deps = program_.deps_of(op);
      op.dep_begin = static_cast<int64_t>(batch.deps.size());
      batch.deps.insert(batch.deps.end(), deps.begin(), deps.end());
      batch.ops.push_back(op);
    }
    return true;
  }

 private:
  static constexpr size_t kOpsPerBatch = 64;
  const RankProgram& program_;
  size_t next_ = 0;
};

class MaterializedSource : public ProgramSource {
 public:
  explicit MaterializedSource(const RingProgram& program) : program_(program) {}
  int ranks() const override { return program_.ranks(); }
  int lanes() const override { return program_.lanes; }
  RankStorage storage(int rank) const override {
    return program_.rank_programs[static_cast<size_t>(rank)].storage;
  }
  const Partition* partition() const override { return &program_.partition; }
  std::vector<TokenRanges> groups() const override { return program_.groups; }
  bool skips_pairs() const override { return program_.skips_pairs; }
  std::unique_ptr<RankStream> stream(int rank) const override {
    return std::make_unique<MaterializedStream>(program_.rank_programs[static_cast<size_t>(rank)]);
  }

 private:
  const RingProgram& program_;
};

}  // namespace

std::unique_ptr<ProgramSource> stream_of(const RingProgram& program) {
  return std::make_unique<MaterializedSource>(program);
}

}  // namespace ring
