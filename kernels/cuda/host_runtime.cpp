#include "kernels/cuda/host_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "kernels/cuda/host_runtime_impl.h"
#include "kernels/recorder.h"

namespace ring::cuda {

HostRuntime::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex);
    is_ending = true;
  }
  for (const auto& own : streams) {
    own->has_commands.notify_one();
    own->thread.join();
  }
}

void HostRuntime::Impl::fail(std::exception_ptr caught) {
  {
    const std::lock_guard lock(mutex);
    if (!failure) failure = caught;
  }
  changed.notify_all();
}

void HostRuntime::Impl::call(int id, std::function<void()> command) {
  Stream& own = stream(id);
  {
    const std::lock_guard lock(mutex);
    own.commands.push_back(std::move(command));
  }
  own.has_commands.notify_one();
}

void HostRuntime::Impl::delay(Stream& own) {
  if (options.max_delay_us == 0) return;
  const uint64_t choice = own.random() % 8;
  if (choice < 4) return;
  if (choice < 7) {
    std::this_thread::yield();
    return;
  }
  const auto most = static_cast<uint64_t>(options.max_delay_us);
  std::this_thread::sleep_for(std::chrono::microseconds(own.random() % most + 1));
}

void HostRuntime::Impl::run_stream(Stream& own) {
  std::unique_lock lock(mutex);
  while (true) {
    own.has_commands.wait(lock, [&] { return is_ending || !own.commands.empty(); });
    if (own.commands.empty()) return;
    const std::function<void()> command = std::move(own.commands.front());
    own.commands.pop_front();
    own.is_busy = true;
    const bool is_skipped = failure != nullptr;
    lock.unlock();
    try {
      if (!is_skipped) {
        delay(own);
        command();
      }
    } catch (...) {
      fail(std::current_exception());
    }
    lock.lock();
    own.is_busy = false;
    if (own.commands.empty()) changed.notify_all();
  }
}

HostRuntime::HostRuntime(HostRuntimeOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
HostRuntime::~HostRuntime() = default;

std::string HostRuntime::link_class(int from, int to) const {
  return impl_->options.link_class ? impl_->options.link_class(from, to) : "pcie";
}
int HostRuntime::device_count() const { return impl_->options.devices; }

DeviceFacts HostRuntime::facts(int) const {
  DeviceFacts facts;
  facts.name = "host";
  facts.multiprocessors = 1;
  return facts;
}

std::byte* HostRuntime::allocate(int, Bytes bytes) {
  impl_->memory.push_back(
      std::make_unique<std::vector<std::byte>>(static_cast<size_t>(bytes), std::byte{0}));
  return impl_->memory.back()->data();
}

void HostRuntime::upload(std::byte* to, std::span<const std::byte> from) {
  synchronize();
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

void HostRuntime::download(std::span<std::byte> to, const std::byte* from) {
  synchronize();
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

int HostRuntime::create_stream(int, bool) {
  const int id = static_cast<int>(impl_->streams.size());
  auto created = std::make_unique<Impl::Stream>();
  Impl::Stream& own = *created;
  own.number = id;
  own.random.seed(impl_->options.seed * 1000003 + static_cast<uint64_t>(id));
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->streams.push_back(std::move(created));
  }
  own.thread = std::thread([impl = impl_.get(), &own] { impl->run_stream(own); });
  return id;
}

int HostRuntime::create_event(int) {
  const std::lock_guard lock(impl_->mutex);
  impl_->events.emplace_back();
  return static_cast<int>(impl_->events.size()) - 1;
}

int HostRuntime::create_stamp(int) {
  const std::lock_guard lock(impl_->mutex);
  impl_->stamps.emplace_back();
  return static_cast<int>(impl_->stamps.size()) - 1;
}

void HostRuntime::record(int stream, int event) {
  Impl& impl = *impl_;
  Impl::Event& at = impl.events[static_cast<size_t>(event)];
  {
    const std::lock_guard lock(impl.mutex);
    ++at.recorded;
  }
  impl.call(stream, [&impl, &at, &own = impl.stream(stream)] {
    const std::lock_guard lock(impl.mutex);
    ++at.done;
    join(at.clock, own.clock);
    impl.changed.notify_all();
  });
}

void HostRuntime::wait(int stream, int event) {
  Impl& impl = *impl_;
  Impl::Event& at = impl.events[static_cast<size_t>(event)];
  const int64_t level = at.recorded;
  impl.call(stream, [&impl, &at, &own = impl.stream(stream), level, event] {
    std::unique_lock lock(impl.mutex);
    const auto limit = std::chrono::duration<double>(impl.options.timeout_s);
    const bool is_there = impl.changed.wait_for(
        lock, limit, [&] { return at.done >= level || impl.failure != nullptr; });
    if (!is_there)
      throw Error(
          ErrorKind::kRunFailed,
          fmt::format("stream {} waits for event {}, which does not come", own.number, event));
    if (level > 0) join(own.clock, at.clock);
  });
}

void HostRuntime::stamp(int stream, int stamp) {
  Impl& impl = *impl_;
  Impl::Stamp& at = impl.stamps[static_cast<size_t>(stamp)];
  impl.call(stream, [&impl, &at, &own = impl.stream(stream)] {
    at.time_ns = now_ns();
    at.stream = own.number;
    at.clock = own.clock;
  });
}

void HostRuntime::copy(int stream, std::byte* to, const std::byte* from, Bytes bytes) {
  Impl& impl = *impl_;
  impl.call(stream, [&own = impl.stream(stream), to, from, bytes] {
    if (bytes > 0) std::memmove(to, from, static_cast<size_t>(bytes));
    tick(own.clock, own.number);
  });
}

void HostRuntime::launch(int stream, const KernelCall& call) {
  Impl& impl = *impl_;
  impl.call(stream, [&impl, &own = impl.stream(stream), call] {
    impl.options.kernels(call);
    tick(own.clock, own.number);
  });
}

void HostRuntime::synchronize() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] {
    return std::all_of(impl_->streams.begin(), impl_->streams.end(),
                       [](const auto& own) { return own->commands.empty() && !own->is_busy; });
  });
  if (impl_->failure) std::rethrow_exception(std::exchange(impl_->failure, nullptr));
  // Everything is ordered before whatever is called from now on.
  StreamClock all;
  for (const auto& own : impl_->streams) join(all, own->clock);
  for (const auto& own : impl_->streams) own->clock = all;
}

void HostRuntime::replay(int captured) { RING_ASSERT(captured == kNotCaptured); }

void HostRuntime::begin_clock() {
  synchronize();
  impl_->start_ns = now_ns();
}

double HostRuntime::stamp_s(int stamp) {
  const Impl::Stamp& at = impl_->stamps[static_cast<size_t>(stamp)];
  return static_cast<double>(at.time_ns - impl_->start_ns) * 1e-9;
}

const StreamClock& HostRuntime::stamp_clock(int stamp) const {
  return impl_->stamps[static_cast<size_t>(stamp)].clock;
}

int HostRuntime::stamp_stream(int stamp) const {
  return impl_->stamps[static_cast<size_t>(stamp)].stream;
}

}  // namespace ring::cuda
