// DevicePlan: the order in which a host thread puts the ops of a program into streams of devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ring_program.h"

namespace ring::cuda {

/// How messages travel.
enum class Carrier {
  kCopies,     ///< As copies between buffers, done by the receiving lane; all ranks in one process.
  kExchanges,  ///< As sends and receives that are called in groups (NCCL); any number of processes.
};

enum class CommandKind : uint8_t {
  kCompute,   ///< An op that is computed: attend, merge, finalize, copy, compute.
  kCopy,      ///< A message is copied from the sender's buffer into the receiver's.
  kStage,     ///< An eager message is copied into its staging buffer, and its send is done.
  kDeliver,   ///< ... and from there into the receiver's buffer.
  kExchange,  ///< A group of sends and receives, on the exchange streams of their ranks.
  kRecord,    ///< Records an event.
  kWait,      ///< What follows in the stream waits for an event.
};

/// A transfer of a group.
struct ExchangeOp {
  OpId send, receive;
};

struct Command {
  CommandKind kind = CommandKind::kCompute;
  int32_t stream = 0;
  int32_t event = -1;     ///< Of record and wait.
  OpId op;                ///< Computed; or the receive of a copy.
  OpId send;              ///< Of a copy.
  int32_t exchange = -1;  ///< Into DevicePlan::exchanges.
};

/// Of `ranks` ranks with `lanes` lanes each, lane L of rank r is stream r * (lanes + 1) + L; the
/// last stream of a rank carries its exchanges. A stream does its commands in order; between
/// streams only events make order. Every wait is needed: what is ordered already, by the stream
/// itself or by events waited for before, gets none.
struct DevicePlan {
  int streams = 0;
  int events = 0;
  std::vector<Command> commands;  ///< In the order in which they are called.
  std::vector<std::vector<ExchangeOp>> exchanges;
};

inline int lane_stream(const RingProgram& program, int rank, int lane) {
  return rank * (program.lanes + 1) + lane;
}
inline int exchange_stream(const RingProgram& program, int rank) {
  return lane_stream(program, rank, program.lanes);
}

/// The whole program; every process makes the same plan and calls the commands of its own ranks.
/// The program must be sound. Throws Error(kUnavailable) for eager messages in exchanges, and for
/// programs that could only go on if a group of exchanges were taken apart.
DevicePlan plan_device(const RingProgram& program, Carrier carrier);

}  // namespace ring::cuda
