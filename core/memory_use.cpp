#include "core/memory_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "core/error.h"
#include "core/memory_model.h"

namespace ring {
namespace {

/// Slices of a rank by op index; null where the op did not run.
using RankSlices = std::vector<const Slice*>;

std::vector<RankSlices> slices_by_op(const RingProgram& program, const Timeline& timeline) {
  std::vector<RankSlices> slices;
  for (const RankProgram& rank : program.rank_programs) {
    slices.emplace_back(rank.ops.size(), nullptr);
  }
  for (const Slice& slice : timeline.slices) {
    const OpId id = slice.op;
    if (id.rank < 0 || id.rank >= program.ranks() || id.index < 0 ||
        id.index >= std::ssize(slices[static_cast<size_t>(id.rank)])) {
      throw_usage(fmt::format("the timeline names op r{}:{}, which the program does not have",
                              id.rank, id.index),
                  "program and timeline must be of the same run");
    }
    slices[static_cast<size_t>(id.rank)][static_cast<size_t>(id.index)] = &slice;
  }
  return slices;
}

struct Change {
  Picoseconds at_ps = 0;
  Bytes bytes = 0;
};

/// What a receive buffer holds since its last receive.
struct Holding {
  const Slice* receive = nullptr;
  Bytes bytes = 0;
  Picoseconds free_ps = 0;
  bool is_read_later = false;  ///< Some reader did not run.
};

class BufferChanges {
 public:
  /// `buffers`: how many receive buffers of K and V there are; those beyond are shaped.
  explicit BufferChanges(int32_t buffers) : buffers_(buffers) {}

  /// In program order: the readers of a buffer stand before the receive that fills it anew.
  void add(const Op& op, const Slice* slice) {
    // Gradient buffers, shaped buffers and states count as held all the time.
    if (op.buffer == kHomeBuffer || is_gradient(op.payload)) return;
    if (op.payload != Payload::kQuerySide && op.buffer >= buffers_) return;
    Holding& holding = holdings_[{op.payload == Payload::kQuerySide, op.buffer}];
    if (op.kind == OpKind::kReceive) {
      release(holding);
      holding = {slice, op.bytes, slice != nullptr ? slice->end_ps : 0, false};
    } else if (computes_pairs(op.kind) || op.kind == OpKind::kSend) {
      holding.is_read_later = holding.is_read_later || slice == nullptr;
      if (slice != nullptr) holding.free_ps = std::max(holding.free_ps, slice->end_ps);
    }
  }

  std::vector<Change> finish() {
    for (auto& [buffer, holding] : holdings_) release(holding);
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.at_ps < b.at_ps; });
    return std::move(changes_);
  }

 private:
  void release(const Holding& holding) {
    if (holding.receive == nullptr) return;
    changes_.push_back({holding.receive->start_ps, holding.bytes});
    if (!holding.is_read_later) changes_.push_back({holding.free_ps, -holding.bytes});
  }

  const int32_t buffers_;
  std::map<std::pair<bool, int32_t>, Holding> holdings_;  ///< Of the query side or not; number.
  std::vector<Change> changes_;
};

StepCurve curve_of(Bytes resident, const std::vector<Change>& changes) {
  std::vector<StepCurve::Step> steps{{0, static_cast<double>(resident)}};
  Bytes bytes = resident;
  for (const Change& change : changes) {
    bytes += change.bytes;
    steps.push_back({std::max<Picoseconds>(0, change.at_ps), static_cast<double>(bytes)});
  }
  return StepCurve(std::move(steps));
}

}  // namespace

Bytes resident_bytes(const Problem& problem, const RankStorage& storage) {
  const int64_t rows = checked_multiply(problem.batch * problem.heads, storage.query_tokens,
                                        "the number of query rows");
  const int64_t element = size_bytes(problem.dtype);
  constexpr int64_t kFloat = 4;
  const Bytes per_row = problem.head_dim * element +                         // query
                        problem.head_dim_v * element + kFloat +              // output, lse
                        storage.states * (problem.head_dim_v + 2) * kFloat;  // u, m, l
  return checked_add(checked_multiply(rows, per_row, "the bytes of a rank"),
                     problem.kv_bytes(storage.home_tokens) + backward_bytes(problem, storage) +
                         shaped_bytes(problem, storage),
                     "the bytes of a rank");
}

std::vector<RankMemoryUse> memory_use(const RingProgram& program, const Timeline& timeline) {
  const std::vector<RankSlices> slices = slices_by_op(program, timeline);
  std::vector<RankMemoryUse> uses;
  for (size_t r = 0; r < slices.size(); ++r) {
    const RankProgram& rank = program.rank_programs[r];
    RankMemoryUse use;
    if (program.has_attention) {
      use.resident_bytes = resident_bytes(program.problem, rank.storage);
      use.buffer_bytes =
          rank.storage.buffers * program.problem.kv_bytes(rank.storage.buffer_tokens) +
          rank.storage.query_buffers *
              program.problem.query_side_bytes(rank.storage.query_buffer_tokens);
    }
    BufferChanges changes(program.has_attention ? rank.storage.buffers : INT32_MAX);
    for (size_t i = 0; i < rank.ops.size(); ++i) changes.add(rank.ops[i], slices[r][i]);
    use.bytes = curve_of(use.resident_bytes, changes.finish());
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace ring
