// Exchanges of HostRuntime: sends meet receives in a network that runtimes may share.
#include <chrono>
#include <cstring>

#include "core/error.h"
#include "kernels/cuda/host_runtime_impl.h"

namespace ring::cuda {

std::shared_ptr<HostNetwork> make_host_network() { return std::make_shared<HostNetwork>(); }

void HostRuntime::exchange(std::span<const ExchangePart> parts, std::span<const int> streams) {
  Impl& impl = *impl_;
  std::map<int, std::pair<std::vector<ExchangePart>, std::vector<int64_t>>> by_stream;
  for (size_t i = 0; i < parts.size(); ++i) {
    const ExchangePart& part = parts[i];
    int64_t& number =
        part.is_send ? impl.sent[{part.rank, part.peer}] : impl.received[{part.peer, part.rank}];
    by_stream[streams[i]].first.push_back(part);
    by_stream[streams[i]].second.push_back(number++);
  }
  for (auto& [stream, group] : by_stream) {
    impl.call(stream, [&impl, &own = impl.stream(stream), group = std::move(group)] {
      impl.exchange_parts(own, group.first, group.second);
    });
  }
}

void HostRuntime::Impl::exchange_parts(Stream& own, const std::vector<ExchangePart>& parts,
                                       const std::vector<int64_t>& numbers) {
  HostNetwork& network = *options.network;
  StreamClock& clock = own.clock;
  const auto limit = std::chrono::duration<double>(options.timeout_s);
  std::unique_lock lock(network.mutex);
  const auto key_of = [&](size_t i) {
    const ExchangePart& part = parts[i];
    return part.is_send ? HostNetwork::Key{part.rank, part.peer, numbers[i]}
                        : HostNetwork::Key{part.peer, part.rank, numbers[i]};
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_send) continue;
    HostNetwork::Meeting& meeting = network.meetings[key_of(i)];
    meeting.data = parts[i].data;
    meeting.bytes = parts[i].bytes;
    meeting.clock = clock;
    meeting.runtime = this;
    meeting.is_sent = true;
  }
  network.changed.notify_all();
  StreamClock learnt = clock;
  for (size_t i = 0; i < parts.size(); ++i) {
    HostNetwork::Meeting& meeting = network.meetings[key_of(i)];
    const bool is_send = parts[i].is_send;
    const auto is_met = [&] { return is_send ? meeting.is_taken : meeting.is_sent; };
    if (is_send) continue;
    if (!network.changed.wait_for(lock, limit, is_met))
      throw Error(ErrorKind::kRunFailed, "a receive waits for a send that does not come");
    RING_ASSERT(meeting.bytes == parts[i].bytes);
    if (meeting.bytes > 0)
      std::memcpy(parts[i].data, meeting.data, static_cast<size_t>(meeting.bytes));
    if (meeting.runtime == this) join(learnt, meeting.clock);
    meeting.is_taken = true;
    network.changed.notify_all();
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_send) continue;
    const HostNetwork::Meeting& meeting = network.meetings[key_of(i)];
    if (!network.changed.wait_for(lock, limit, [&] { return meeting.is_taken; }))
      throw Error(ErrorKind::kRunFailed, "a send waits for a receive that does not come");
    network.meetings.erase(key_of(i));
  }
  clock = learnt;
  tick(clock, own.number);
}

}  // namespace ring::cuda
