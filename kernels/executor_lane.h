// LaneRunner: does the ops of one lane of one rank, in order, and records when.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "core/mask.h"
#include "core/ring_program.h"
#include "kernels/backward_run.h"
#include "kernels/cpu/attend.h"
#include "kernels/executor_storage.h"
#include "kernels/gate.h"
#include "kernels/recorder.h"
#include "kernels/transport/transport.h"

namespace ring {

/// How an attend op knows which keys its rows see.
struct OpSpans {
  bool sees_all = true;            ///< Every row sees every key of the block.
  std::vector<cpu::KeySpan> kept;  ///< Per row, when they are kept.
  TokenRanges queries, keys;       ///< To work them out from, when they are not.
};

/// An op with what it needs that can be looked up before the run.
struct PreparedOp {
  const Op* op = nullptr;
  int64_t index = 0;  ///< Into RankProgram::ops.
  std::span<const LanePoint> deps;
  int32_t slot = -1;             ///< Of the transport, for send and receive.
  OpSpans spans;                 ///< For attend and backward.
  std::vector<RowRun> row_runs;  ///< For copy and add.
};

/// All of a program that is the same for every lane of a rank.
struct RankContext {
  const RingProgram* program = nullptr;
  RankMemory* memory = nullptr;
  std::vector<Gate>* progress = nullptr;  ///< One gate a lane: ops of the lane that are done.
  Transport* transport = nullptr;
  const std::atomic<bool>* is_stopped = nullptr;
};

class LaneRunner {
 public:
  LaneRunner(const RankContext& context, int lane, std::vector<PreparedOp> ops);

  /// Takes scratch memory; to be called by the thread that will run the lane.
  void reserve();
  /// Does all ops, or as many as there are before the run is stopped.
  void run();

  const LaneRecorder& recorder() const { return recorder_; }
  LaneRecorder& recorder() { return recorder_; }
  const std::vector<PreparedOp>& ops() const { return ops_; }

 private:
  bool wait_for(const PreparedOp& prepared);
  /// Fills the times; returns false when the run was stopped meanwhile.
  bool execute(const PreparedOp& prepared, OpTimes& times);
  void attend(const PreparedOp& prepared);
  void attend_heads(const Op& op, HeadRange heads, const cpu::KeySpan* spans);
  void attend_naively(const Op& op, const cpu::KeySpan* spans);
  void merge(const Op& op);
  void finalize(const Op& op);
  void copy(const PreparedOp& prepared);
  bool transfer(const PreparedOp& prepared, OpTimes& times);
  const cpu::KeySpan* spans_of(const PreparedOp& prepared);
  cpu::AttendShape shape_of(const Op& op, HeadRange heads) const;
  int64_t scratch_bytes(const Op& op) const;

  RankContext context_;
  int lane_;
  std::vector<PreparedOp> ops_;
  LaneRecorder recorder_;
  cpu::Workspace workspace_;
  std::vector<KeyInterval> intervals_;  ///< Scratch for spans that are not kept.
  std::vector<cpu::KeySpan> scratch_spans_;
  Pages scores_;  ///< Of naive attention.
};

/// Spans of an attend or backward op; kept when `kept_bytes` has room for them.
OpSpans prepare_spans(const RingProgram& program, const Op& op, Bytes& kept_bytes);
/// Where the rows of a copy or add lie in its source and target.
std::vector<RowRun> prepare_row_runs(const RingProgram& program, const Op& op);

}  // namespace ring
