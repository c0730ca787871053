// The check of a RingProgram: everything that can be known to be wrong before anything runs.
#pragma once

#include <string>
#include <vector>

#include "core/ring_program.h"

namespace ring {

enum class FaultKind {
  kDeadlock,          ///< A cycle of ops that wait for each other.
  kUnmatchedSend,     ///< No receive takes this message.
  kUnmatchedReceive,  ///< No send brings this message.
  kSizeMismatch,      ///< Send and receive disagree about bytes.
  kBufferRace,     ///< A buffer is overwritten while it may still be read, or read while written.
  kWrongContents,  ///< An op reads keys that its buffer does not hold.
  kPairsMissing,   ///< Visible (query, key) pairs are never computed.
  kPairsRepeated,  ///< Visible pairs are computed more than once.
  kGradientsLost,  ///< A share of the gradients never comes home.
  kGradientsRepeated,  ///< A share of the gradients comes home more than once.
  kBadOp,              ///< An op refers to a rank, lane, buffer or token that does not exist.
};
std::string_view name(FaultKind kind);

struct Fault {
  FaultKind kind;
  std::string message;    ///< A sentence that names ranks, ops and buffers.
  std::vector<OpId> ops;  ///< For a deadlock the cycle, in order of waiting.
};

/// All faults found, the gravest first; empty when the program is sound. Buffers that are returned
/// too late show as a deadlock whose cycle runs through the waiting receives.
std::vector<Fault> check_program(const RingProgram& program);

/// Throws Error(kUsage) with the first fault as message and a hint, unless the program is sound.
void require_sound(const RingProgram& program);

/// "r1:12 receive shard 0 from r0 into buffer 1".
std::string describe(const RingProgram& program, OpId id);

}  // namespace ring
