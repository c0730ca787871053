// RingProgram: what every rank does, op by op; the one thing that is both executed and simulated.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/partition.h"
#include "core/problem.h"
#include "core/tuning.h"
#include "core/units.h"

namespace ring {

enum class OpKind : uint8_t {
  kAttend,    ///< Continues an attention state with one block of keys.
  kSend,      ///< Sends one message to a peer.
  kReceive,   ///< Receives one message from a peer into a buffer.
  kMerge,     ///< Merges attention state `source_state` into `state`.
  kCopy,      ///< Copies `bytes` on the rank.
  kFinalize,  ///< Divides the state and writes output and lse.
  kCompute,   ///< Computes for a given time; for programs without attention.
  kBackward,  ///< Adds one block of (query, key) pairs to dQ, dK and dV.
  kDelta,     ///< Prepares the backward pass: rows of (lse, sum of dO * O); resets gradients.
  kAdd,       ///< Adds gradient buffer `source_state` to gradient buffer `state`.
};
inline constexpr int kOpKinds = 10;
std::string_view name(OpKind kind);
/// Attend or backward: what computes (query, key) pairs.
constexpr bool computes_pairs(OpKind kind) {
  return kind == OpKind::kAttend || kind == OpKind::kBackward;
}

/// What a message carries, a buffer holds or a copy moves. Of the heads [head_begin, head_end) of
/// the op; K and V of the KV heads that these query heads read; 0..0 means all heads. A backward op
/// names the side that travels: K and V, or the query side.
enum class Payload : uint8_t {
  kKeyValue,        ///< K and V of keys, in the model dtype.
  kQuery,           ///< Q of query rows, in the model dtype.
  kPartial,         ///< A partial result of query rows: output and lse, fp32. Lies in a state.
  kOutput,          ///< The finished output of query rows, in the model dtype.
  kQuerySide,       ///< Q, dO (model dtype), lse and delta (fp32) of query rows.
  kKeyGradients,    ///< dK and dV of keys, fp32. Lies in a gradient buffer.
  kQueryGradients,  ///< dQ of query rows, fp32. Lies in a gradient buffer.
  kOutputGradient,  ///< dO of query rows, in the model dtype.
  kState,           ///< A state of query rows as it is: u, m and l, fp32.
};
std::string_view name(Payload payload);
constexpr bool is_gradient(Payload payload) {
  return payload == Payload::kKeyGradients || payload == Payload::kQueryGradients;
}

/// What lies in an attention state.
constexpr bool is_state(Payload payload) {
  return payload == Payload::kPartial || payload == Payload::kState;
}

/// Query rows on their way, or results of them.
constexpr bool is_row_payload(Payload payload) {
  return payload == Payload::kQuery || is_state(payload) || payload == Payload::kOutput ||
         payload == Payload::kOutputGradient;
}

/// When a transfer may start: when the sender is ready, or when both sides are.
enum class Protocol : uint8_t { kRendezvous, kEager };
std::string_view name(Protocol protocol);

/// How an attend op works.
enum class AttendMethod : uint8_t {
  kFlash,  ///< By tiles: scores are never stored.
  kNaive,  ///< All scores of the block are stored, `bytes` of them, then softmax, then times V.
};

/// Lanes of a rank are in-order queues numbered from 0. Lane 0 is compute; generators then put
/// `lanes` send lanes and `lanes` receive lanes. Programs written by hand may use any lane for any
/// kind of op.
inline constexpr int kComputeLane = 0;

/// A point of a lane: all its ops up to and including number `position` are done. Since lanes are
/// in order, one counter per lane says which points are reached.
struct LanePoint {
  int32_t lane = 0;
  int64_t position = 0;  ///< 0-based number of the op within its lane.
  bool operator==(const LanePoint&) const = default;
};

/// The home shard of a rank, as opposed to its receive buffers 0 .. depth - 1.
inline constexpr int32_t kHomeBuffer = -1;

/// One unit of work. Fields that a kind does not use keep their defaults.
struct Op {
  OpKind kind = OpKind::kCompute;
  Protocol protocol = Protocol::kRendezvous;  ///< Of a send.
  /// Of a send, receive or copy; of a backward op: what travels. A finalize with kPartial turns
  /// `state` into a partial result in place; other finalizes write output, whatever this says.
  Payload payload = Payload::kKeyValue;
  AttendMethod method = AttendMethod::kFlash;
  int32_t lane = kComputeLane;
  int64_t lane_position = 0;  ///< Number within the lane.

  int32_t step = 0;          ///< Ring step: hops that the data has made.
  int32_t peer = -1;         ///< Send: destination. Receive: source.
  int64_t message = -1;      ///< Pairs a send with its receive; unique per (source, destination).
  Bytes bytes = 0;           ///< On the wire, or copied.
  Picoseconds fixed_ps = 0;  ///< Duration of a compute op.

  int32_t micro_step = 0;  ///< Repetition of the whole pass that the op belongs to.
  /// Read by attend and send, written by receive, copy and finalize. The home buffer stands for Q,
  /// K, V or output of the own shard, as the payload says.
  int32_t buffer = kHomeBuffer;
  int32_t kv_shard = -1;             ///< Rank whose keys these are.
  int64_t kv_begin = 0, kv_end = 0;  ///< Keys, in local order of that shard.
  int64_t buffer_begin = 0;          ///< Token of the buffer at which the op's first token lies.
  int32_t q_shard = -1;              ///< Rank whose query rows these are.
  int64_t q_begin = 0, q_end = 0;    ///< Query rows, in local order of that shard.
  int32_t head_begin = 0, head_end = 0;  ///< Query heads.
  /// Attend: where the query rows lie. Backward: where the side that stays lies, from row 0 on.
  /// Delta: where the query side lies, whose output and lse lie in `buffer`.
  int32_t q_buffer = kHomeBuffer;
  /// Row of q_buffer (attend), of buffer (copy, finalize) or of source_state (add) of the first.
  int64_t q_at = 0;

  /// A copy moves rows q_begin .. q_end of q_shard, whatever its payload is, from `source_buffer`
  /// to `buffer`. Where the rows of a buffer are in the order of another shard or group, that is
  /// named here; -1: they follow each other from buffer_begin in the source, from q_at in the
  /// target. An add has orders likewise; from q_at in the source, from buffer_begin in the target.
  int32_t source_buffer = kHomeBuffer;
  int32_t source_order = -1, target_order = -1;

  /// Attention state continued, merged into, or finalized. Add: the gradient buffer that is added
  /// to. Backward: that of the side that travels. Delta: that of the keys.
  int32_t state = 0;
  /// Merge, add: what is merged or added. Backward: gradient buffer of the side that stays. Delta:
  /// that of the query rows.
  int32_t source_state = -1;
  bool starts_state = false;  ///< Resets the rows of `state` first.

  int64_t visible_pairs = 0;  ///< Exact visible (query, key) pairs, per head and batch element.
  int64_t active_rows = 0;    ///< Query rows that see at least one key of the block.
  int64_t edge_rows = 0;      ///< Active rows that do not see the whole block.
  Flops flops = 0;            ///< Exact, all heads and batch elements.

  int64_t dep_begin = 0;  ///< Index into the deps of the rank.
  int32_t dep_count = 0;  ///< Points of lanes of the same rank that must be reached first.
};

/// A buffer with room for some heads only, or for something else than K and V. Of the query side
/// and of gradients a rank has either shaped buffers or uniform ones.
struct BufferShape {
  Payload payload = Payload::kKeyValue;
  Tokens tokens = 0;
  int32_t head_begin = 0, head_end = 0;  ///< Query heads, as in Op.
  /// Shard or group whose values are there from the start, or whose gradients end there; -1: they
  /// are received or copied. Of a query side that holds for Q alone.
  int32_t filled_with = -1;
  /// The shaped buffer before it, by its place in the list, whose memory it uses too; -1: its own.
  /// That one has memory of its own, and has as many bytes.
  int32_t memory_of = -1;
};

/// A state with room for other rows than those of the own shard. It is packed: an op on it names
/// all rows that are in it, as many as they are.
struct StateShape {
  Tokens rows = 0;
  int32_t head_begin = 0, head_end = 0;
};

/// What the buffers and states of one rank hold at most; executor and memory model read it.
struct RankStorage {
  Tokens query_tokens = 0;
  Tokens home_tokens = 0;    ///< KV tokens of the own shard.
  Tokens buffer_tokens = 0;  ///< KV tokens of one receive buffer.
  int32_t buffers = 0;
  int32_t states = 1;                            ///< Of all query rows and heads of the own shard.
  std::vector<BufferShape> shaped_buffers = {};  ///< Numbered from `buffers` on.
  std::vector<StateShape> shaped_states = {};    ///< Numbered from `states` on.
  Bytes scratch_bytes = 0;                       ///< Scores of naive attention.
  bool has_home_inputs = true;     ///< False: Q, K and V of the own shard are not on the rank.
  Tokens query_buffer_tokens = 0;  ///< Query rows of one receive buffer of the query side.
  int32_t query_buffers = 0;
  Tokens gradient_tokens = 0;  ///< Tokens of one gradient buffer.
  int32_t gradient_buffers = 0;
  Payload gradients = Payload::kKeyGradients;  ///< What the gradient buffers hold.

  int32_t all_buffers() const { return buffers + static_cast<int32_t>(shaped_buffers.size()); }
  int32_t all_states() const { return states + static_cast<int32_t>(shaped_states.size()); }
};

/// The ops of one rank in an order in which every dep precedes its op.
struct RankProgram {
  std::vector<Op> ops;
  std::vector<LanePoint> deps;
  RankStorage storage;

  std::span<const LanePoint> deps_of(const Op& op) const {
    return {deps.data() + op.dep_begin, static_cast<size_t>(op.dep_count)};
  }
};

/// Names an op in program, timeline and comparison alike.
struct OpId {
  int32_t rank = 0;
  int64_t index = 0;  ///< Into RankProgram::ops.
  auto operator<=>(const OpId&) const = default;
};

/// A batch of ops handed out by a stream; `deps` is indexed by Op::dep_begin.
struct OpBatch {
  std::vector<Op> ops;
  std::vector<LanePoint> deps;
  void clear() {
    ops.clear();
    deps.clear();
  }
};

/// Hands out the ops of one rank in order, a few at a time, so that programs too large to be kept
/// can be simulated.
class RankStream {
 public:
  virtual ~RankStream() = default;
  /// Appends at least one op to `batch`, or returns false when the rank has no more.
  virtual bool next(OpBatch& batch) = 0;
};

/// A program that is generated rank by rank on demand.
class ProgramSource {
 public:
  virtual ~ProgramSource() = default;
  virtual int ranks() const = 0;
  virtual int lanes() const = 0;
  virtual RankStorage storage(int rank) const = 0;
  virtual std::unique_ptr<RankStream> stream(int rank) const = 0;

  virtual std::string name() const { return {}; }
  /// What the attention ops compute; null for programs without any.
  virtual const Problem* problem() const { return nullptr; }
  /// What the generator decided, and why, as sentences.
  virtual std::vector<std::string> notes() const { return {}; }
  /// A divisor d of the number of ranks such that rank r + d does the same as rank r, with d added
  /// (modulo the ranks) to every peer and shard, and messages of other numbers; 0: none is known.
  virtual int rotation() const { return 0; }
  /// The shards that the ranks hold; null: as problem and tuning say.
  virtual const Partition* partition() const { return nullptr; }
  /// See RingProgram.
  virtual std::vector<TokenRanges> groups() const { return {}; }
  virtual bool skips_pairs() const { return false; }
};

/// The materialized program. `problem`, `tuning` and `partition` say what it computes; a program
/// read from text may have none of them (`has_attention` false).
struct RingProgram {
  std::string name;
  int lanes = 3;
  std::vector<RankProgram> rank_programs;

  bool has_attention = false;
  Problem problem;
  Tuning tuning;
  Partition partition = Partition::contiguous(0, 1);
  std::vector<std::string> notes;  ///< What the generator decided, and why.
  /// Unions of shards that ops refer to as shards, numbered from partition.ranks() on. When any op
  /// does so, all attend ops do, and the groups cover the sequence.
  std::vector<TokenRanges> groups = {};
  bool skips_pairs = false;  ///< It is no exact attention: some visible pairs are left out.

  /// Tokens of a shard or group, in local order.
  const TokenRanges& tokens_of(int shard) const {
    const int shards = partition.ranks();
    return shard < shards ? partition.shard(shard) : groups[static_cast<size_t>(shard - shards)];
  }
  int shards_and_groups() const { return partition.ranks() + static_cast<int>(groups.size()); }
  int ranks() const { return static_cast<int>(rank_programs.size()); }
  const Op& op(OpId id) const {
    return rank_programs[static_cast<size_t>(id.rank)].ops[static_cast<size_t>(id.index)];
  }
  int64_t op_count() const;
};

/// Drains every stream of the source.
RingProgram materialize(const ProgramSource& source);

/// Serves a materialized program, which must outlive the source.
std::unique_ptr<ProgramSource> stream_of(const RingProgram& program);

/// Appends ops to a rank and numbers their lanes; the only way generators and the text reader make
/// ops, so that lane positions cannot go wrong.
class OpWriter {
 public:
  explicit OpWriter(int lanes) : next_position_(static_cast<size_t>(lanes), 0) {}
  /// Returns the lane point that is reached when this op is done.
  LanePoint append(const Op& op, std::span<const LanePoint> deps, OpBatch& batch);
  /// The last op of a lane; position -1: there is none.
  LanePoint last(int32_t lane) const {
    return {lane, next_position_[static_cast<size_t>(lane)] - 1};
  }

 private:
  std::vector<int64_t> next_position_;
};

}  // namespace ring
