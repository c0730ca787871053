#include "kernels/transport/in_process.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/recorder.h"

namespace ring {
namespace {

using Buffer = std::vector<std::byte>;

Buffer pattern(size_t bytes, int seed) {
  Buffer buffer(bytes);
  for (size_t i = 0; i < bytes; ++i)
    buffer[i] = static_cast<std::byte>(static_cast<int>(i) * 31 + seed);
  return buffer;
}

std::array<ConstPart, 2> parts_of(const Buffer& a, const Buffer& b) {
  return {{{a.data(), static_cast<Bytes>(a.size())}, {b.data(), static_cast<Bytes>(b.size())}}};
}
std::array<Part, 2> room_in(Buffer& a, Buffer& b) {
  return {{{a.data(), static_cast<Bytes>(a.size())}, {b.data(), static_cast<Bytes>(b.size())}}};
}

TEST(InProcessTransport, RendezvousCarriesBothPartsAndAgreesOnTheTimes) {
  InProcessTransport transport;
  const int32_t sender = transport.open_send({0, 1, 7}, 300, Protocol::kRendezvous);
  const int32_t receiver = transport.open_receive({0, 1, 7}, 300);
  const Buffer k = pattern(100, 1), v = pattern(200, 2);
  for (int run = 0; run < 3; ++run) {
    Buffer to_k(100), to_v(200);
    transport.begin_run();
    Transfer sent;
    std::thread thread([&] { sent = transport.send(sender, parts_of(k, v)); });
    const Transfer received = transport.receive(receiver, room_in(to_k, to_v));
    thread.join();
    EXPECT_EQ(to_k, k);
    EXPECT_EQ(to_v, v);
    EXPECT_TRUE(sent.is_complete);
    EXPECT_TRUE(received.is_complete);
    EXPECT_EQ(sent.start_ns, received.start_ns);
    EXPECT_EQ(sent.end_ns, received.end_ns);
    EXPECT_LE(received.start_ns, received.end_ns);
  }
}

TEST(InProcessTransport, RendezvousSendWaitsForItsReceiver) {
  InProcessTransport transport;
  const int32_t slot = transport.open_send({0, 1, 0}, 2, Protocol::kRendezvous);
  transport.open_receive({0, 1, 0}, 2);
  const Buffer k = pattern(1, 1), v = pattern(1, 2);
  Buffer to_k(1), to_v(1);
  std::atomic<bool> is_sent{false};
  std::thread thread([&] {
    transport.send(slot, parts_of(k, v));
    is_sent = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(is_sent);
  transport.receive(slot, room_in(to_k, to_v));
  thread.join();
  EXPECT_TRUE(is_sent);
}

TEST(InProcessTransport, EagerSendGoesOnAndItsBufferMayChange) {
  InProcessTransport transport;
  const int32_t slot = transport.open_send({0, 1, 0}, 8, Protocol::kEager);
  transport.open_receive({0, 1, 0}, 8);
  Buffer k = pattern(4, 1), v = pattern(4, 2);
  const Buffer sent_k = k, sent_v = v;
  EXPECT_TRUE(transport.send(slot, parts_of(k, v)).is_complete);
  std::fill(k.begin(), k.end(), std::byte{0});
  std::fill(v.begin(), v.end(), std::byte{0});
  Buffer to_k(4), to_v(4);
  EXPECT_TRUE(transport.receive(slot, room_in(to_k, to_v)).is_complete);
  EXPECT_EQ(to_k, sent_k);
  EXPECT_EQ(to_v, sent_v);
}

TEST(InProcessTransport, MessagesAreKeptApartBySourceDestinationAndNumber) {
  InProcessTransport transport;
  const std::array<MessageKey, 4> keys = {{{0, 1, 0}, {0, 1, 1}, {0, 2, 0}, {1, 0, 0}}};
  std::array<int32_t, 4> senders{}, receivers{};
  for (size_t i = 0; i < keys.size(); ++i) {
    senders[i] = transport.open_send(keys[i], 2, Protocol::kEager);
    receivers[i] = transport.open_receive(keys[i], 2);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const Buffer k = pattern(1, static_cast<int>(i)), v = pattern(1, static_cast<int>(10 + i));
    transport.send(senders[i], parts_of(k, v));
  }
  for (size_t i = keys.size(); i-- > 0;) {
    Buffer k(1), v(1);
    transport.receive(receivers[i], room_in(k, v));
    EXPECT_EQ(k, pattern(1, static_cast<int>(i)));
    EXPECT_EQ(v, pattern(1, static_cast<int>(10 + i)));
  }
}

TEST(InProcessTransport, RefusesEndsThatDisagree) {
  InProcessTransport transport;
  transport.open_send({0, 1, 0}, 8, Protocol::kRendezvous);
  EXPECT_THROW(transport.open_receive({0, 1, 0}, 9), Error);
}

TEST(InProcessTransport, StopEndsAllWaitingUntilTheNextRun) {
  InProcessTransport transport;
  const int32_t slot = transport.open_send({0, 1, 0}, 2, Protocol::kRendezvous);
  transport.open_receive({0, 1, 0}, 2);
  const int32_t other = transport.open_receive({1, 0, 0}, 2);
  const Buffer k = pattern(1, 1), v = pattern(1, 2);
  Buffer to_k(1), to_v(1), other_k(1), other_v(1);
  Transfer sent{true, 0, 0}, received{true, 0, 0};
  std::thread sender([&] { sent = transport.send(slot, parts_of(k, v)); });
  std::thread receiver([&] { received = transport.receive(other, room_in(other_k, other_v)); });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  transport.stop();
  sender.join();
  receiver.join();
  EXPECT_FALSE(sent.is_complete);
  EXPECT_FALSE(received.is_complete);
  transport.begin_run();
  std::thread again([&] { sent = transport.send(slot, parts_of(k, v)); });
  EXPECT_TRUE(transport.receive(slot, room_in(to_k, to_v)).is_complete);
  again.join();
  EXPECT_TRUE(sent.is_complete);
}

TEST(Gate, WaitersOfSeveralLevelsAreAllWoken) {
  for (int round = 0; round < 200; ++round) {
    Gate gate;
    std::atomic<int> through{0};
    std::vector<std::thread> threads;
    for (uint32_t level = 1; level <= 4; ++level) {
      threads.emplace_back([&gate, &through, level] { through += gate.wait(level) ? 1 : 0; });
    }
    for (uint32_t level = 1; level <= 4; ++level) gate.raise(level);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(through, 4);
  }
}

TEST(Gate, ClosedStaysClosedUntilReset) {
  Gate gate;
  gate.close();
  EXPECT_FALSE(gate.wait(3));
  gate.raise(5);
  EXPECT_FALSE(gate.wait(3));
  gate.reset();
  gate.raise(3);
  EXPECT_TRUE(gate.wait(3));
}

TEST(Gate, WaitForGivesUp) {
  Gate gate;
  EXPECT_FALSE(gate.wait_for(1, 1));
  gate.add_one();
  EXPECT_TRUE(gate.wait_for(1, 1));
}

}  // namespace
}  // namespace ring
