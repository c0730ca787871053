#include "kernels/cpu/parallel.h"

#include <algorithm>

#include "kernels/cpu/block_args.h"
#include "kernels/cpu/layout.h"

namespace ring::cpu {
namespace {

// Pieces per member: enough that one slow core gives work away, as long as a piece has so many
// rows that packing K and V for it costs little.
constexpr int64_t kPiecesPerMember = 2;
constexpr int64_t kRowsPerPiece = 1024;
// What a row costs besides its keys, in keys: packing it and moving its state.
constexpr int64_t kRowOverheadKeys = 16;

// The row whose costs begin at or before `target`, rounded to a multiple of `to` rows.
int64_t row_at_cost(const std::vector<int64_t>& before, int64_t target, int64_t to) {
  const auto at = std::lower_bound(before.begin(), before.end(), target);
  return std::min<int64_t>((at - before.begin() + to / 2) / to * to,
                           static_cast<int64_t>(before.size()) - 1);
}

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

ParallelKernels::ParallelKernels(ThreadTeam& team, const CacheSizes& caches) : team_(team) {
  for (int member = 0; member < team.size(); ++member) {
    workspaces_.push_back(std::make_unique<Workspace>(caches));
  }
}

// Cuts the stacked rows of all KV heads into pieces of equal cost.
void ParallelKernels::plan_pieces(const AttendShape& shape, const KeySpan* spans) {
  const int64_t q_rows = shape.q_rows;
  cost_.resize(static_cast<size_t>(q_rows) + 1);
  cost_[0] = 0;
  for (int64_t row = 0; row < q_rows; ++row) {
    const int64_t keys =
        spans == nullptr ? shape.kv_rows : std::max(0, spans[row].end - spans[row].begin);
    cost_[static_cast<size_t>(row) + 1] = cost_[static_cast<size_t>(row)] + kRowOverheadKeys + keys;
  }
  const int64_t head_cost = cost_.back();
  const int64_t total = head_cost * shape.heads;
  const int64_t by_rows = divide_up(q_rows * shape.heads, kRowsPerPiece);
  const int64_t members = team_.size();
  const int64_t rounds = std::clamp<int64_t>(by_rows / members, 1, kPiecesPerMember);
  const int64_t pieces = members * rounds;
  pieces_.clear();
  pieces_.push_back(0);
  for (int64_t piece = 1; piece < pieces; ++piece) {
    const int64_t target = total / pieces * piece;
    const int64_t row = row_at_cost(cost_, target % head_cost, kMaxTileRows);
    const int64_t bound = target / head_cost * q_rows + row;
    if (bound > pieces_.back()) pieces_.push_back(bound);
  }
  pieces_.push_back(q_rows * shape.heads);
}

void ParallelKernels::attend(const AttendShape& shape, ConstView q, ConstView k, ConstView v,
                             const KeySpan* spans, AttendState state) {
  check_shape(shape);
  if (shape.q_rows == 0 || shape.kv_rows == 0) return;
  const ForwardArgs args{shape, q, k, v, spans, state};
  plan_pieces(shape, spans);
  const int64_t rows = stacked_rows(shape);
  const auto pieces = static_cast<int64_t>(pieces_.size()) - 1;
  std::atomic<int64_t> next = 0;
  team_.run([&](int member) {
    Workspace& workspace = *workspaces_[static_cast<size_t>(member)];
    for (int64_t piece = next++; piece < pieces; piece = next++) {
      int64_t at = pieces_[static_cast<size_t>(piece)];
      const int64_t end = pieces_[static_cast<size_t>(piece) + 1];
      while (at < end) {
        const int64_t head = at / rows;
        const int64_t stop = std::min(end, (head + 1) * rows);
        attend_rows(args, {static_cast<int>(head), at - head * rows, stop - head * rows},
                    workspace);
        at = stop;
      }
    }
  });
}

// Cuts the keys into units, the same for every head, and lists them so that neighbours in the list
// belong to different heads, which wait for nothing of each other. Units are long, which packs the
// rows less often, but short at the end, so that the members finish together, and at the start
// where members share a head: the second waits for the first's rows.
void ParallelKernels::plan_units(const AttendShape& shape) {
  units_.clear();
  const int64_t heads = shape.kv_heads;
  for (int64_t begin = 0; begin < shape.kv_rows;) {
    const int64_t left = (shape.kv_rows - begin) * heads;
    int64_t keys = left / (2 * team_.size()) / kUnitKeyStep * kUnitKeyStep;
    if (begin == 0 && heads < team_.size()) keys = kUnitKeyStep;
    keys = std::min(std::clamp(keys, kUnitKeyStep, kUnitKeys), shape.kv_rows - begin);
    for (int head = 0; head < shape.kv_heads; ++head) {
      units_.push_back({head, begin, begin + keys});
    }
    begin += keys;
  }
}

// Members take the key units of all heads in order. Within a head, unit (keys i, rows j) waits for
// (i - 1, j), so dQ of every row is summed in the order of the keys; a member does the rows of its
// key unit in order, so dK and dV are too. The lowest unit taken never waits: no deadlock.
void ParallelKernels::attend_backward(const AttendShape& shape, const BackwardInput& input,
                                      const KeySpan* spans, BackwardOutput output) {
  check_shape(shape);
  if (shape.q_rows == 0 || shape.kv_rows == 0) return;
  const BackwardArgs args = backward_args(shape, input, spans, output);
  const int64_t rows = stacked_rows(shape);
  plan_units(shape);
  const auto units = static_cast<int64_t>(units_.size());
  if (static_cast<int64_t>(progress_.size()) < units) {
    progress_ = std::vector<std::atomic<int>>(static_cast<size_t>(units));
  }
  for (int64_t i = 0; i < units; ++i) progress_[static_cast<size_t>(i)] = 0;
  // All scratch first: a member that failed later would leave others waiting for its units.
  team_.run([&](int member) {
    workspaces_[static_cast<size_t>(member)]->reserve(backward_workspace_bytes(shape));
  });
  std::atomic<int64_t> next = 0;
  team_.run([&](int member) {
    Workspace& workspace = *workspaces_[static_cast<size_t>(member)];
    for (int64_t i = next++; i < units; i = next++) {
      const auto at = static_cast<size_t>(i);
      const KeyUnit& unit = units_[at];
      for (int64_t row = 0; row < rows; row += kUnitRows) {
        const int done = static_cast<int>(row / kUnitRows) + 1;
        if (unit.begin > 0) {
          const std::atomic<int>& before = progress_[at - static_cast<size_t>(shape.kv_heads)];
          for (int seen = before; seen < done; seen = before) before.wait(seen);
        }
        const RowRange range{unit.kv_head, row, std::min(row + kUnitRows, rows)};
        attend_backward_unit(args, {range, unit.begin, unit.end}, workspace);
        progress_[at] = done;
        progress_[at].notify_all();
      }
    }
  });
}

}  // namespace ring::cpu
