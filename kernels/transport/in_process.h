// InProcessTransport: messages between ranks that are threads of this process.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "kernels/gate.h"
#include "kernels/memory.h"
#include "kernels/transport/transport.h"

namespace ring {

/// Rendezvous: the receiving thread copies straight from the sender's buffer into its own, so one
/// copy is made, on the receiver's core. Eager: the sender copies into a bounce slot of the
/// message's size and goes on; the receiver copies from there.
class InProcessTransport final : public Transport {
 public:
  InProcessTransport();
  ~InProcessTransport() override;

  int32_t open_send(const MessageKey& key, Bytes bytes, Protocol protocol) override;
  int32_t open_receive(const MessageKey& key, Bytes bytes) override;
  void begin_run() override;
  Transfer send(int32_t slot, std::span<const ConstPart> parts) override;
  Transfer receive(int32_t slot, std::span<const Part> parts) override;
  void stop() override;

 private:
  struct Mailbox;

  std::map<MessageKey, int32_t> slots_;
  std::vector<std::unique_ptr<Mailbox>> mailboxes_;
};

}  // namespace ring
