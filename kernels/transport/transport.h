// Transport: how the bytes of a message get from one rank to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ring_program.h"
#include "core/units.h"

namespace ring {

/// Names a message; unique within a program.
struct MessageKey {
  int32_t source = 0;
  int32_t destination = 0;
  int64_t message = 0;
  auto operator<=>(const MessageKey&) const = default;
};

/// A contiguous piece of a message; K and V of the same tokens are two parts of one message.
struct ConstPart {
  const std::byte* data = nullptr;
  Bytes bytes = 0;
};
struct Part {
  std::byte* data = nullptr;
  Bytes bytes = 0;
};

inline constexpr size_t kMaxParts = 4;

/// What became of a send or receive. [start_ns, end_ns) is the transfer itself, on the clock of
/// recorder.h; waiting for the peer lies before it.
struct Transfer {
  bool is_complete = false;  ///< False: the run was stopped before the message had passed.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

/// Messages are opened before the run; then send and receive block, neither lock nor allocate, and
/// may be called by different threads for different messages.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Announces an end of a message and returns the slot to use it by. Called from one thread while
  /// nothing runs. Throws Error(kUsage) when the two ends disagree about the bytes.
  virtual int32_t open_send(const MessageKey& key, Bytes bytes, Protocol protocol) = 0;
  virtual int32_t open_receive(const MessageKey& key, Bytes bytes) = 0;

  /// Makes all slots empty for the next run; only while nothing runs.
  virtual void begin_run() = 0;
  /// Sends the parts in order. Rendezvous returns when the receiver has them, eager as soon as
  /// `parts` may be overwritten.
  virtual Transfer send(int32_t slot, std::span<const ConstPart> parts) = 0;
  /// Receives into the parts in order, whose sizes must be those of the sender's.
  virtual Transfer receive(int32_t slot, std::span<const Part> parts) = 0;
  /// Ends all waiting, now and until begin_run; from any thread.
  virtual void stop() = 0;
};

}  // namespace ring
