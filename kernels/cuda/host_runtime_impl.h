// The insides of HostRuntime: its streams, events and stamps, and the network between runtimes.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <tuple>

#include "kernels/cuda/host_kernels.h"
#include "kernels/cuda/host_runtime.h"

namespace ring::cuda {

/// Messages of every pair of ranks meet in the order in which they were called.
class HostNetwork {
 public:
  struct Meeting {
    const std::byte* data = nullptr;
    Bytes bytes = 0;
    StreamClock clock;  ///< Of the sending stream; empty when it is of another runtime.
    const void* runtime = nullptr;
    bool is_sent = false, is_taken = false;
  };
  using Key = std::tuple<int, int, int64_t>;  ///< Source, destination, number.

  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, Meeting> meetings;
};

inline void join(StreamClock& clock, const StreamClock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

/// A command was done: the stream's own count goes up.
inline void tick(StreamClock& clock, int stream) {
  const auto at = static_cast<size_t>(stream);
  if (clock.size() <= at) clock.resize(at + 1);
  ++clock[at];
}

struct HostRuntime::Impl {
  struct Stream {
    int number = 0;
    std::deque<std::function<void()>> commands;
    std::condition_variable has_commands;
    bool is_busy = false;
    StreamClock clock;
    std::mt19937_64 random;
    std::thread thread;
  };
  struct Event {
    int64_t recorded = 0;  ///< Calls of record.
    int64_t done = 0;      ///< Of these, those that the stream has come to.
    StreamClock clock;
  };
  struct Stamp {
    int64_t time_ns = 0;
    int stream = 0;
    StreamClock clock;
  };

  explicit Impl(HostRuntimeOptions options_in) : options(std::move(options_in)) {
    if (!options.network) options.network = make_host_network();
    if (!options.kernels) options.kernels = run_on_host;
  }
  ~Impl();

  /// For the calling thread alone: the list may grow.
  Stream& stream(int id) { return *streams[static_cast<size_t>(id)]; }
  void call(int id, std::function<void()> command);
  void run_stream(Stream& own);
  void delay(Stream& own);
  void fail(std::exception_ptr caught);
  void exchange_parts(Stream& own, const std::vector<ExchangePart>& parts,
                      const std::vector<int64_t>& numbers);

  HostRuntimeOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<Stream>> streams;
  std::deque<Event> events;
  std::deque<Stamp> stamps;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory;
  std::map<std::pair<int, int>, int64_t> sent, received;  ///< Numbers of messages called.
  std::exception_ptr failure;
  bool is_ending = false;
  int64_t start_ns = 0;
};

}  // namespace ring::cuda
