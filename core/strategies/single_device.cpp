// Attention on one device, the rows that rings are compared with: flash, chunked and naive.
#include <fmt/format.h>

#include "core/error.h"
#include "core/strategies/attend_op.h"
#include "core/strategies/backward_op.h"
#include "core/strategy.h"

namespace ring {
namespace {

enum class Method { kFlash, kChunked, kNaive };

/// Forward chunk by chunk, then delta of all rows, then backward chunk by chunk, as often as
/// gradients are accumulated; then the optimizer gap.
class DeviceStream : public RankStream {
 public:
  DeviceStream(const Problem& problem, const Tuning& tuning, const Partition& partition,
               Method method)
      : problem_(problem),
        tuning_(tuning),
        partition_(partition),
        method_(method),
        tokens_(partition.shard_tokens(0)),
        chunk_(method == Method::kChunked ? tuning.block_tokens : tokens_),
        stage_(first_stage()) {}

  bool next(OpBatch& batch) override {
    const size_t before = batch.ops.size();
    while (batch.ops.size() == before && stage_ != Stage::kEnd) {
      const int32_t step = micro_step_;
      advance(batch);
      for (size_t i = before; i < batch.ops.size(); ++i) batch.ops[i].micro_step = step;
    }
    return batch.ops.size() > before;
  }

  /// fp32, of one head of one batch element: the scores, and backward their gradients.
  static Bytes score_bytes(const Problem& problem, Tokens tokens) {
    const Bytes scores = checked_multiply(tokens, tokens * 4, "the bytes of all scores");
    if (!has_backward(problem.pass)) return scores;
    return checked_add(scores, scores, "the bytes of all scores");
  }

 private:
  enum class Stage { kForward, kDelta, kBackward, kGap, kEnd };

  Stage first_stage() const { return has_forward(problem_.pass) ? Stage::kForward : Stage::kDelta; }

  void advance(OpBatch& batch) {
    if (stage_ == Stage::kDelta) {
      writer_.append(delta_op(problem_, 0, tokens_, micro_step_ == 0), {}, batch);
      stage_ = Stage::kBackward;
    } else if (stage_ == Stage::kGap) {
      append_optimizer_gap(tuning_, writer_, batch);
      stage_ = Stage::kEnd;
    } else {
      const KeySlice rows{row_, std::min(row_ + chunk_, tokens_)};
      stage_ == Stage::kForward ? forward(rows, batch) : backward(rows, batch);
      row_ = rows.end;
      if (row_ == tokens_) end_pass();
    }
  }

  void end_pass() {
    row_ = 0;
    if (stage_ == Stage::kForward && has_backward(problem_.pass)) {
      stage_ = Stage::kDelta;
    } else {
      stage_ = ++micro_step_ == tuning_.accumulation_steps ? Stage::kGap : first_stage();
    }
  }

  void forward(KeySlice rows, OpBatch& batch) {
    AttendWriter attends(problem_, tuning_, partition_,
                         RowPlace{0, rows, kHomeBuffer, rows.begin, 0});
    const size_t first = batch.ops.size();
    for (int64_t key = 0; key < tokens_; key += chunk_) {
      const AttendPlace place{0, {key, std::min(key + chunk_, tokens_)}, kHomeBuffer, key, 0};
      attends.append(place, {}, writer_, batch);
    }
    store_scores(first, batch);
    attends.finalize(writer_, batch);
  }

  void backward(KeySlice rows, OpBatch& batch) {
    const size_t first = batch.ops.size();
    for (int64_t key = 0; key < tokens_; key += chunk_) {
      const KeySlice keys{key, std::min(key + chunk_, tokens_)};
      const Op op = backward_op(problem_, partition_, {0, rows}, {0, keys});
      if (op.visible_pairs > 0) writer_.append(op, {}, batch);
    }
    store_scores(first, batch);
  }

  void store_scores(size_t first, OpBatch& batch) const {
    if (method_ != Method::kNaive) return;
    for (size_t i = first; i < batch.ops.size(); ++i) {
      batch.ops[i].method = AttendMethod::kNaive;
      batch.ops[i].bytes = score_bytes(problem_, tokens_);
    }
  }

  const Problem& problem_;
  const Tuning& tuning_;
  const Partition& partition_;
  const Method method_;
  const Tokens tokens_, chunk_;
  OpWriter writer_{1};
  Stage stage_;
  int64_t row_ = 0;
  int32_t micro_step_ = 0;
};

class DeviceSource : public ProgramSource {
 public:
  DeviceSource(const Problem& problem, const Tuning& tuning, const Partition& partition,
               Method method)
      : problem_(problem), tuning_(tuning), partition_(partition), method_(method) {}

  int ranks() const override { return 1; }
  int lanes() const override { return 1; }
  std::unique_ptr<RankStream> stream(int) const override {
    return std::make_unique<DeviceStream>(problem_, tuning_, partition_, method_);
  }
  std::string name() const override { return tuning_.strategy; }
  const Problem* problem() const override { return &problem_; }

  RankStorage storage(int) const override {
    RankStorage storage;
    storage.query_tokens = storage.home_tokens = partition_.shard_tokens(0);
    if (method_ == Method::kChunked) {
      storage.states = 0;
      storage.shaped_states = {{std::min(tuning_.block_tokens, storage.query_tokens), 0,
                                static_cast<int32_t>(problem_.heads)}};
    }
    if (method_ == Method::kNaive)
      storage.scratch_bytes = DeviceStream::score_bytes(problem_, storage.query_tokens);
    return storage;
  }

 private:
  const Problem problem_;
  const Tuning tuning_;
  const Partition partition_;
  const Method method_;
};

std::unique_ptr<ProgramSource> make(const Problem& problem, const Tuning& tuning,
                                    const Partition& partition, std::string_view name,
                                    Method method) {
  if (partition.ranks() != 1) {
    throw_usage(fmt::format("strategy {} is for one device, but there are {} ranks", name,
                            partition.ranks()),
                "use --ranks 1");
  }
  if (tuning.is_deterministic) {
    throw_usage(fmt::format("strategy {} does not merge in the fixed tree", name),
                "leave out --deterministic, or use pass-kv with --ranks 1");
  }
  return std::make_unique<DeviceSource>(problem, tuning, partition, method);
}

std::unique_ptr<ProgramSource> make_flash(const Problem& problem, const Tuning& tuning,
                                          const Partition& partition) {
  return make(problem, tuning, partition, "flash", Method::kFlash);
}
std::unique_ptr<ProgramSource> make_chunked(const Problem& problem, const Tuning& tuning,
                                            const Partition& partition) {
  return make(problem, tuning, partition, "chunked", Method::kChunked);
}
std::unique_ptr<ProgramSource> make_naive(const Problem& problem, const Tuning& tuning,
                                          const Partition& partition) {
  return make(problem, tuning, partition, "naive", Method::kNaive);
}

}  // namespace

// One op over all keys; the kernel works by tiles and stores no scores.
Strategy flash_strategy() {
  return {"flash",
          "one device, one op by tiles: nothing moves",
          "",
          make_flash,
          {"0", "Q, K, V, O and one state of all tokens",
           "everything fits on one device and one device is fast enough"}};
}

// Query chunks of `block_tokens` rows against key blocks, one state for one chunk: memory does not
// grow with the sequence. Source: Rabe and Staats, arXiv 2112.05682.
Strategy chunked_strategy() {
  return {"chunked",
          "one device, chunks of queries against blocks of keys, one state for one chunk",
          "",
          make_chunked,
          {"0", "Q, K, V, O and one state of one chunk", "the state of all tokens does not fit"}};
}

// All scores of a head are stored: memory grows with the square of the sequence.
Strategy naive_strategy() {
  return {"naive",
          "one device, all scores of a head are stored before the softmax",
          "",
          make_naive,
          {"0", "Q, K, V, O and S^2 scores", "never: it is what others are compared with"}};
}

}  // namespace ring
