#include "kernels/transport/in_process.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/error.h"
#include "kernels/recorder.h"

namespace ring {
namespace {

/// Levels of the gate of a mailbox.
constexpr uint32_t kPosted = 1;  ///< The sender's parts may be read.
constexpr uint32_t kTaken = 2;   ///< The receiver has read them.

void copy_part(std::byte* to, const std::byte* from, Bytes bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

struct InProcessTransport::Mailbox {
  Gate gate;
  Bytes bytes = 0;
  Protocol protocol = Protocol::kRendezvous;
  Pages bounce;
  // Written by the sender before kPosted.
  std::array<ConstPart, kMaxParts> parts;
  size_t part_count = 0;
  // Written by the receiver before kTaken.
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

InProcessTransport::InProcessTransport() = default;
InProcessTransport::~InProcessTransport() = default;

int32_t InProcessTransport::open_receive(const MessageKey& key, Bytes bytes) {
  const auto [it, is_new] = slots_.try_emplace(key, static_cast<int32_t>(mailboxes_.size()));
  if (is_new) {
    mailboxes_.push_back(std::make_unique<Mailbox>());
    mailboxes_.back()->bytes = bytes;
  } else if (mailboxes_[static_cast<size_t>(it->second)]->bytes != bytes) {
    throw_usage("message " + std::to_string(key.message) + " from rank " +
                std::to_string(key.source) + " to rank " + std::to_string(key.destination) +
                " has " + std::to_string(mailboxes_[static_cast<size_t>(it->second)]->bytes) +
                " bytes at one end and " + std::to_string(bytes) + " at the other");
  }
  return it->second;
}

int32_t InProcessTransport::open_send(const MessageKey& key, Bytes bytes, Protocol protocol) {
  const int32_t slot = open_receive(key, bytes);
  Mailbox& box = *mailboxes_[static_cast<size_t>(slot)];
  box.protocol = protocol;
  if (protocol == Protocol::kEager) {
    box.bounce = Pages(bytes);
    box.bounce.touch();
  }
  return slot;
}

void InProcessTransport::begin_run() {
  for (const auto& box : mailboxes_) box->gate.reset();
}

Transfer InProcessTransport::send(int32_t slot, std::span<const ConstPart> parts) {
  Mailbox& box = *mailboxes_[static_cast<size_t>(slot)];
  RING_ASSERT(parts.size() <= kMaxParts);
  if (box.protocol == Protocol::kEager) {
    const int64_t start_ns = now_ns();
    std::byte* to = box.bounce.data();
    box.part_count = parts.size();
    for (size_t i = 0; i < parts.size(); ++i) {
      copy_part(to, parts[i].data, parts[i].bytes);
      box.parts[i] = {to, parts[i].bytes};
      to += parts[i].bytes;
    }
    box.gate.raise(kPosted);
    return {true, start_ns, now_ns()};
  }
  box.part_count = parts.size();
  std::copy(parts.begin(), parts.end(), box.parts.begin());
  box.gate.raise(kPosted);
  if (!box.gate.wait(kTaken)) return {};
  return {true, box.start_ns, box.end_ns};
}

Transfer InProcessTransport::receive(int32_t slot, std::span<const Part> parts) {
  Mailbox& box = *mailboxes_[static_cast<size_t>(slot)];
  if (!box.gate.wait(kPosted)) return {};
  const int64_t start_ns = now_ns();
  RING_ASSERT(parts.size() == box.part_count);
  for (size_t i = 0; i < parts.size(); ++i) {
    RING_ASSERT(parts[i].bytes == box.parts[i].bytes);
    copy_part(parts[i].data, box.parts[i].data, parts[i].bytes);
  }
  const int64_t end_ns = now_ns();
  box.start_ns = start_ns;
  box.end_ns = end_ns;
  box.gate.raise(kTaken);
  return {true, start_ns, end_ns};
}

void InProcessTransport::stop() {
  for (const auto& box : mailboxes_) box->gate.close();
}

}  // namespace ring
