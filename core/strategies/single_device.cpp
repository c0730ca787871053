#include "core/strategies/single_device.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/strategies/attend_op.h"
#include "core/strategies/kv_routing.h"

namespace ring {
namespace {

enum class Method { kFlash, kChunked, kNaive };

class DeviceStream : public RankStream {
 public:
  DeviceStream(const Problem& problem, const Tuning& tuning, const Partition& partition,
               Method method)
      : problem_(problem), tuning_(tuning), partition_(partition), method_(method) {}

  bool next(OpBatch& batch) override {
    const int64_t tokens = partition_.shard_tokens(0);
    if (row_ == tokens) return false;
    const int64_t rows = method_ == Method::kChunked ? tuning_.block_tokens : tokens;
    const int64_t end = std::min(row_ + rows, tokens);
    AttendWriter attends(problem_, tuning_, partition_,
                         RowPlace{0, {row_, end}, kHomeBuffer, row_, 0});
    const size_t first = batch.ops.size();
    for (int64_t key = 0; key < tokens; key += rows) {
      const AttendPlace place{0, {key, std::min(key + rows, tokens)}, kHomeBuffer, key, 0};
      attends.append(place, {}, writer_, batch);
    }
    if (method_ == Method::kNaive) {
      for (size_t i = first; i < batch.ops.size(); ++i) {
        batch.ops[i].method = AttendMethod::kNaive;
        batch.ops[i].bytes = score_bytes(tokens);
      }
    }
    attends.finalize(writer_, batch);
    row_ = end;
    return true;
  }

  /// Of one head of one batch element, fp32.
  static Bytes score_bytes(Tokens tokens) {
    return checked_multiply(tokens, tokens * 4, "the bytes of all scores");
  }

 private:
  const Problem& problem_;
  const Tuning& tuning_;
  const Partition& partition_;
  const Method method_;
  OpWriter writer_{1};
  int64_t row_ = 0;
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
      storage.scratch_bytes = DeviceStream::score_bytes(storage.query_tokens);
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
  require_forward(problem, name);
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

Strategy flash_strategy() {
  return {"flash",
          "one device, one op by tiles: nothing moves",
          "",
          make_flash,
          {"0", "Q, K, V, O and one state of all tokens",
           "everything fits on one device and one device is fast enough"}};
}

Strategy chunked_strategy() {
  return {"chunked",
          "one device, chunks of queries against blocks of keys, one state for one chunk",
          "",
          make_chunked,
          {"0", "Q, K, V, O and one state of one chunk", "the state of all tokens does not fit"}};
}

Strategy naive_strategy() {
  return {"naive",
          "one device, all scores of a head are stored before the softmax",
          "",
          make_naive,
          {"0", "Q, K, V, O and S^2 scores", "never: it is what others are compared with"}};
}

}  // namespace ring
