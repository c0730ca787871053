// SimulationEngine: the event loop that moves the lanes of all ranks through their ops.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/machine.h"
#include "core/ring_program.h"
#include "sim/event_queue.h"
#include "sim/fluid.h"
#include "sim/folding.h"
#include "sim/interference.h"
#include "sim/machine_model.h"
#include "sim/message_table.h"
#include "sim/op_pool.h"
#include "sim/recorder.h"
#include "sim/simulator.h"

namespace ring {

/// Runs one program once. A lane takes its next op when the one before is done, waits for the lane
/// points the op depends on, posts it, and is done with it when the work or transfer is. Ops are
/// fetched only as far as is needed to give every lane its next one.
class SimulationEngine {
 public:
  /// All must outlive the engine; `problem` may be null. With a fold (else null), `source` is
  /// fold_source() of the program.
  SimulationEngine(const ProgramSource& source, const Problem* problem, const Machine& machine,
                   const SimulationOptions& options, const Fold* fold);

  /// To be called once. Throws as `simulate`.
  SimulationResult run();

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  static constexpr uint16_t kNoLane = 0xffff;

  enum class LaneState : uint8_t {
    kIdle,          ///< No op left.
    kFree,          ///< Between two ops.
    kNeedsDeps,     ///< The next op waits for a lane point.
    kWaking,        ///< It may go on, but the lane has to wake up first.
    kPosted,        ///< A send or receive waits for its peer.
    kRunning,       ///< Computation or transfer is under way.
    kWakingToCopy,  ///< Receiver copy: the message is there, the lane has to wake up.
    kWakingDone,    ///< Receiver copy: the message was taken, the sender has to wake up.
  };

  struct alignas(64) Lane {
    int64_t done = 0;
    int64_t fetched = 0;
    int64_t awaited_position = 0;
    uint32_t first_op = kNone, last_op = kNone;  ///< Of the pool.
    uint32_t rank = 0;
    uint32_t next_dep = 0;
    uint32_t message = kNone;  ///< Of the send or receive that is posted.
    uint32_t channel = kNone;  ///< Last used, for the peer below.
    int32_t channel_peer = -1;
    uint16_t first_waiter = kNoLane;  ///< Lanes of the rank that wait for a point of this one.
    uint16_t next_waiter = kNoLane;   ///< In the list of the lane that this one waits for.
    bool channel_sends = false;
    bool has_waited = false;
    LaneState state = LaneState::kFree;
  };
  /// Flow groups of what a lane does on its processor; -1: not yet needed.
  struct LaneGroups {
    int core = -1, copy = -1;
  };

  /// Messages from one rank to another.
  struct alignas(64) Channel {
    int32_t source = 0, destination = 0;
    int group = -1;  ///< Of flows; -1: messages are copied by processors.
    uint32_t first_message = kNone, last_message = kNone;  ///< Posted by one side only, or eager.
    uint32_t message_count = 0;
    Picoseconds latency_ps = 0;
    Bytes carried = 0;
    std::unique_ptr<MessageTable> table;  ///< Of the messages in the list, once they are many.
  };
  struct ChannelPath {
    double cap = 0;  ///< Of a flow that is alone.
    std::vector<int> links;
  };

  enum class Stage : uint8_t {
    kPosted,    ///< One side is here, or both in the instant they meet.
    kBouncing,  ///< Receiver copy, eager: the sender copies it out of its buffer.
    kMoving,
    kArrived,  ///< Eager: there before the receive is posted.
  };

  struct Message {
    int64_t number = 0;
    Bytes bytes = 0;
    uint32_t channel = kNone;
    uint32_t sender = kNone, receiver = kNone;  ///< Lanes that posted and are not through.
    uint32_t next = kNone, previous = kNone;    ///< In the list of the channel.
    Stage stage = Stage::kPosted;
    bool receiver_waits = false;  ///< As the recorder sees it.
  };

  struct Feed {
    std::unique_ptr<RankStream> stream;
    int64_t fetched = 0;
    bool is_exhausted = false;
  };

  // engine.cpp: the loop, and lanes that take ops.
  void start_ranks();
  void start_rank(int rank);
  void handle(EventQueue::Slot slot);
  void work_off_ready();
  void take_next(uint32_t lane);
  void check_deps(uint32_t lane);
  void wait_for(uint32_t lane, uint32_t awaited, int64_t position);
  void complete(uint32_t lane);
  void record(uint32_t lane);
  void start_op(const Lane& lane);
  void reach_next_point(uint32_t lane);
  SimulationResult result();
  std::vector<LinkUse> link_uses(Picoseconds makespan_ps) const;

  // engine_fetch.cpp: how ops come from their streams into the lanes.
  bool fetch(uint32_t rank);
  void append(uint32_t rank, int64_t index, const Op& op, std::span<const LanePoint> deps,
              Lane& lane);
  std::string fault_of(const Op& op, std::span<const LanePoint> deps, const Lane* lanes) const;
  double work_of(uint32_t rank, int64_t index, const Op& op) const;

  // engine_ops.cpp: computation.
  void post(uint32_t lane);
  void post_compute(uint32_t lane);
  void end_compute(uint32_t lane);
  void end_work(Fluid::Token token);
  int core_group(uint32_t lane);
  int copy_group(uint32_t lane);

  // engine_messages.cpp: how messages meet and travel.
  void post_send(uint32_t lane);
  void post_receive(uint32_t lane);
  void begin_wait(Message& message);
  void end_wait(Message& message);
  void begin_flow(uint32_t message);
  void end_flow(uint32_t message);
  void wake_receiver(uint32_t message);
  void begin_copy(uint32_t message);
  void end_copy(uint32_t message);
  void begin_bounce(uint32_t message);
  void end_bounce(uint32_t message);

  // engine_channels.cpp: channels, and the messages that wait for their other side.
  uint32_t channel_of(uint32_t lane, bool sends);
  uint32_t open_channel(int32_t source, int32_t destination);
  uint32_t find_message(uint32_t channel, const PendingOp& op);
  uint32_t new_message(uint32_t channel, const PendingOp& op);
  uint32_t search(const Channel& channel, int64_t number) const;
  void list(uint32_t message);
  void unlist(uint32_t message);

  // stall_report.cpp
  void check_finished() const;
  std::string describe_wait(const Lane& lane, uint32_t number) const;

  Lane& lane_at(uint32_t lane) { return lanes_[lane]; }
  /// Fluid tokens: first the lanes, each for its computation, then the messages.
  Fluid::Token token_of_message(uint32_t message) const {
    return static_cast<Fluid::Token>(lanes_.size()) + message;
  }
  const PendingOp& op_of(const Lane& lane) const { return ops_[lane.first_op]; }
  void prefetch_next() const;
  void prefetch_lane_end(uint32_t lane) const;
  void prefetch_flow_end(Fluid::Token token) const;

  const ProgramSource& source_;
  const SimulationOptions& options_;
  const int ranks_;      ///< That are simulated.
  const int all_ranks_;  ///< Of the program; more when it is folded.
  const Fold* const fold_;
  const uint32_t lanes_per_rank_;
  const bool copies_;  ///< TransferKind::kReceiverCopy.
  Picoseconds now_ps_ = 0;

  EventQueue events_;
  Fluid fluid_;
  MachineModel model_;
  Interference interference_;
  SimulationRecorder recorder_;

  std::vector<Feed> feeds_;
  std::vector<Lane> lanes_;
  std::vector<LaneGroups> lane_groups_;
  OpPool ops_;
  std::vector<uint32_t> ready_;  ///< Lanes to look at before time goes on.
  std::vector<Channel> channels_;
  std::vector<ChannelPath> paths_;                          ///< Of the channels.
  std::unordered_map<uint64_t, uint32_t> channel_numbers_;  ///< By source and destination.
  std::vector<Message> messages_;
  std::vector<uint32_t> free_messages_;
  std::vector<Fluid::Token> finished_;  ///< Scratch.
  OpBatch batch_;                       ///< Scratch.
  int64_t op_count_ = 0, message_count_ = 0, event_count_ = 0;
  __int128 flops_ = 0;  ///< Of 131,072 ranks: more than 64 bits.
  Bytes bytes_sent_ = 0;
};

}  // namespace ring
