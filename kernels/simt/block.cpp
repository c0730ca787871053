#include "kernels/simt/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string_view>

#include "core/error.h"

namespace ring::simt {
namespace {

/// After a collective another warp goes on once in so many times.
constexpr uint64_t kWarpSwitch = 24;

std::string_view name(Collective what) {
  switch (what) {
    case Collective::kMma:
      return "mma";
    case Collective::kLdmatrix:
      return "ldmatrix";
    case Collective::kLdmatrixTrans:
      return "ldmatrix.trans";
    case Collective::kShuffle:
      return "shuffle";
    case Collective::kVote:
      return "vote";
    case Collective::kWarpBarrier:
      return "warp barrier";
    case Collective::kBlockBarrier:
      return "block barrier";
    case Collective::kSharedLoad:
      return "load from shared memory";
    case Collective::kSharedStore:
      return "store to shared memory";
    case Collective::kCopy:
      return "asynchronous copy";
    case Collective::kBarrierInit:
      return "beginning of a barrier";
    case Collective::kBarrierFence:
      return "fence of barriers";
    case Collective::kArrive:
      return "arrival at a barrier";
    case Collective::kPhaseWait:
      return "wait for a phase";
    case Collective::kTensorCopy:
      return "bulk tensor copy";
    case Collective::kWgmma:
      return "wgmma";
    case Collective::kWgmmaFence:
      return "wgmma fence";
    case Collective::kWgmmaCommit:
      return "wgmma commit";
    case Collective::kWgmmaWait:
      return "wgmma wait";
    case Collective::kRegisters:
      return "change of the registers";
  }
  return "";
}

std::string place_text(const std::source_location& where) {
  std::string_view file = where.file_name();
  file = file.substr(file.rfind('/') + 1);
  return fmt::format("{}:{}", file, where.line());
}

bool is_same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() &&
         std::strcmp(a.file_name(), b.file_name()) == 0;
}

}  // namespace

Block::Block(const LaunchOptions& options)
    : options_(options),
      warp_count_(options.shape.threads / kWarp),
      shared_(options.shape.shared_bytes, warp_count_),
      barriers_(*this),
      products_(*this, warp_count_),
      warps_(static_cast<size_t>(warp_count_)) {
  RING_ASSERT(options.shape.threads % kWarp == 0 && warp_count_ > 0 && warp_count_ <= 32);
  for (int i = 0; i < options.shape.threads; ++i) {
    threads_.push_back(std::make_unique<Thread>());
    threads_.back()->block = this;
    threads_.back()->index = i;
  }
  random_state_ = options.seed * 0x9e3779b97f4a7c15ULL + 1;
}

Block::~Block() = default;

uint64_t Block::random() {  // splitmix64
  uint64_t z = (random_state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

void Block::run(Entry entry, const void* kernel) {
  entry_ = entry;
  kernel_ = kernel;
  const LaunchShape& shape = options_.shape;
  std::vector<int64_t> numbers(static_cast<size_t>(shape.grid_x) *
                               static_cast<size_t>(shape.grid_y * shape.grid_z));
  std::iota(numbers.begin(), numbers.end(), int64_t{0});
  for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random() % i]);
  for (const int64_t number : numbers) run_block(number);
}

void Block::run_block(int64_t number) {
  const LaunchShape& shape = options_.shape;
  block_[0] = static_cast<int>(number % shape.grid_x);
  block_[1] = static_cast<int>(number / shape.grid_x % shape.grid_y);
  block_[2] = static_cast<int>(number / shape.grid_x / shape.grid_y);
  shared_.reset();
  barriers_.reset();
  products_.reset();
  for (int index = 0; index < warp_count_; ++index) {
    Warp& warp = warps_[static_cast<size_t>(index)];
    warp = Warp{};
    warp.order.resize(kWarp);
    warp.place.resize(kWarp);
    std::iota(warp.order.begin(), warp.order.end(), index * kWarp);
    for (size_t i = kWarp; i > 1; --i) std::swap(warp.order[i - 1], warp.order[random() % i]);
    for (size_t i = 0; i < kWarp; ++i) warp.place[static_cast<size_t>(warp.order[i] % kWarp)] = i;
    warp.resume = warp.order.front();
  }
  for (const auto& thread : threads_) {
    thread->copies.clear();
    thread->groups = 0;
    thread->fiber.start(&Block::enter, thread.get());
  }
  const int first = pick_warp(-1);
  Fiber::switch_to(main_,
                   threads_[static_cast<size_t>(warps_[static_cast<size_t>(first)].resume)]->fiber);
  if (!fault_.empty()) throw SimtFault(fault_);
}

void Block::enter(void* argument) {
  Thread& thread = *static_cast<Thread*>(argument);
  Block& block = *thread.block;
  block.entry_(block.kernel_, block, thread.index);
  block.finish_thread(thread.index);
}

void Block::switch_threads(int from, int to) {
  if (from == to) return;
  Fiber::switch_to(threads_[static_cast<size_t>(from)]->fiber,
                   threads_[static_cast<size_t>(to)]->fiber);
}

int Block::pick_warp(int except) {
  int choices[32];
  uint64_t count = 0;
  for (int i = 0; i < warp_count_; ++i) {
    if (i != except) wake(i);
    if (i != except && warps_[static_cast<size_t>(i)].state == WarpState::kRunnable)
      choices[count++] = i;
  }
  return count == 0 ? -1 : choices[random() % count];
}

void Block::leave_warp(int thread, const std::source_location& where) {
  Warp& warp = warp_of(thread);
  warp.resume = thread;
  const bool is_blocked = warp.state != WarpState::kRunnable;
  const int next = pick_warp(thread / kWarp);
  if (next < 0 && !is_blocked) return;
  if (next < 0) {
    const bool is_phase = warp.state == WarpState::kAtPhase;
    fail(thread,
         is_phase ? "waits for a phase that does not end"
                  : "waits at a barrier that the other warps have left behind",
         where);
  }
  switch_threads(thread, warps_[static_cast<size_t>(next)].resume);
}

void Block::meet(int thread, Collective what, void* argument, Execute execute,
                 const std::source_location& where) {
  Warp& warp = warp_of(thread);
  if (warp.arrived == 0) {
    warp.what = what;
    warp.execute = execute;
    warp.where = where;
  }
  if (warp.what != what || !is_same_place(warp.where, where)) {
    std::string wrong = fmt::format("comes to a {} while others of its warp are at a {} ({})",
                                    name(what), name(warp.what), place_text(warp.where));
    fail(thread, std::move(wrong), where);
  }
  if (warp.done > 0) fail(thread, "is at a collective, but others of its warp have ended", where);
  const auto lane = static_cast<size_t>(thread % kWarp);
  warp.lanes[lane] = {thread, argument};
  if (++warp.arrived < kWarp) {
    switch_threads(thread, warp.order[(warp.place[lane] + 1) % kWarp]);
    return;
  }
  warp.arrived = 0;
  execute(*this, std::span<const Arrival>(warp.lanes, kWarp));
  if (warp.state != WarpState::kRunnable || random() % kWarpSwitch == 0) leave_warp(thread, where);
}

void Block::wake(int index) {
  Warp& warp = warps_[static_cast<size_t>(index)];
  if (warp.state != WarpState::kAtPhase) return;
  if (!barriers_.is_over(index * kWarp, warp.phase.barrier, warp.phase.parity)) return;
  barriers_.acquire(index, warp.phase.barrier);
  warp.state = WarpState::kRunnable;
}

void Block::wait_phase(int thread, SharedAddress barrier, int parity,
                       const std::source_location& where) {
  PhaseWait wait{barrier, parity};
  const auto execute = [](Block& block, std::span<const Arrival> lanes) {
    Warp& own = block.warp_of(lanes[0].thread);
    own.phase = *static_cast<const PhaseWait*>(lanes[0].argument);
    for (const Arrival& lane : lanes) {
      const auto& other = *static_cast<const PhaseWait*>(lane.argument);
      if (other.barrier != own.phase.barrier || other.parity != own.phase.parity)
        block.fail(lane.thread, "waits for another phase than its warp", own.where);
    }
    own.state = WarpState::kAtPhase;
    block.wake(lanes[0].thread / kWarp);
  };
  meet(thread, Collective::kPhaseWait, &wait, execute, where);
}

void Block::sync_block(int thread, const std::source_location& where) {
  const auto execute = [](Block& block, std::span<const Arrival> lanes) {
    Warp& own = block.warp_of(lanes[0].thread);
    own.state = WarpState::kAtBarrier;
    uint32_t mask = 0;
    for (size_t i = 0; i < block.warps_.size(); ++i) {
      const Warp& warp = block.warps_[i];
      if (warp.state == WarpState::kDone)
        block.fail(lanes[0].thread, "is at a barrier of the block, but a warp has ended",
                   own.where);
      if (warp.state != WarpState::kAtBarrier) return;
      if (!is_same_place(warp.where, own.where)) {
        std::string wrong =
            fmt::format("is at a barrier of the block, but warp {} is at that of {}", i,
                        place_text(warp.where));
        block.fail(lanes[0].thread, std::move(wrong), own.where);
      }
      mask |= 1U << i;
    }
    for (Warp& warp : block.warps_) warp.state = WarpState::kRunnable;
    block.shared_.sync_warps(mask);
    ++block.counters_.block_barriers;
  };
  meet(thread, Collective::kBlockBarrier, nullptr, execute, where);
}

void Block::finish_thread(int thread) {
  Warp& warp = warp_of(thread);
  Thread& own = *threads_[static_cast<size_t>(thread)];
  const std::source_location nowhere;
  if (warp.arrived > 0)
    fail(thread, fmt::format("ends while others of its warp are at a {}", name(warp.what)),
         warp.where);
  if (!own.copies.empty()) fail(thread, "ends with asynchronous copies under way", warp.where);
  if (products_.is_pending(thread / kWarp))
    fail(thread, "ends with matrix products under way", warp.where);
  if (++warp.done < kWarp) {
    const size_t place = warp.place[static_cast<size_t>(thread % kWarp)];
    switch_threads(thread, warp.order[(place + 1) % kWarp]);
  }
  warp.state = WarpState::kDone;
  const int next = pick_warp(thread / kWarp);
  if (next >= 0) switch_threads(thread, warps_[static_cast<size_t>(next)].resume);
  for (const Warp& other : warps_) {
    if (other.state == WarpState::kAtBarrier)
      fail(other.resume, "waits at a barrier of the block, but a warp has ended", other.where);
    if (other.state == WarpState::kAtPhase)
      fail(other.resume, "waits for a phase that does not end", other.where);
  }
  if (barriers_.has_copies()) fail(thread, "ends with bulk copies under way", warp.where);
  Fiber::switch_to(own.fiber, main_);
}

const std::source_location& Block::collective_place(int thread) const {
  return warps_[static_cast<size_t>(thread / kWarp)].where;
}

void Block::begin_copy(int thread, SharedAddress to, const void* from) {
  require(thread, shared_.begin_copy(thread, to), collective_place(thread));
  Thread& own = *threads_[static_cast<size_t>(thread)];
  Copy copy;
  copy.to = to;
  if (from != nullptr) {
    std::memcpy(copy.bytes, from, kCopyBytes);
    counters_.copy_bytes += kCopyBytes;
  }
  own.copies.push_back(copy);
}

void Block::commit_copies(int thread) {
  Thread& own = *threads_[static_cast<size_t>(thread)];
  for (Copy& copy : own.copies) {
    if (copy.is_committed) continue;
    copy.is_committed = true;
    copy.group = own.groups;
  }
  ++own.groups;
}

void Block::wait_copies(int thread, int pending) {
  Thread& own = *threads_[static_cast<size_t>(thread)];
  const int64_t landing = own.groups - pending;
  const auto lands = [&](const Copy& copy) {
    if (!copy.is_committed || copy.group >= landing) return false;
    shared_.land_copy(thread, copy.to, copy.bytes);
    return true;
  };
  std::erase_if(own.copies, lands);
}

void Block::check_global(int thread, const void* at, int bytes, bool is_write,
                         const std::source_location& where) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  if (address % static_cast<uintptr_t>(bytes) != 0)
    fail(thread, fmt::format("global address is not a multiple of {} bytes", bytes), where);
  if (options_.regions.empty()) return;
  for (const GlobalRegion& region : options_.regions) {
    const auto begin = reinterpret_cast<uintptr_t>(region.begin);
    const bool is_inside = address >= begin && address + static_cast<uintptr_t>(bytes) <=
                                                   begin + static_cast<uintptr_t>(region.bytes);
    if (is_inside && (region.is_writable || !is_write)) return;
  }
  fail(thread, is_write ? "writes global memory that it may not" : "reads foreign global memory",
       where);
}

void Block::fail(int thread, std::string what, const std::source_location& where) {
  fault_ = fmt::format("block ({}, {}, {}) warp {} lane {} at {}: {}", block_[0], block_[1],
                       block_[2], thread / kWarp, thread % kWarp, place_text(where), what);
  std::string().swap(what);  // Nobody will destroy it.
  // Never resumed; the fiber may be any that runs now, which is where the stack pointer goes.
  Fiber::switch_to(threads_[static_cast<size_t>(thread)]->fiber, main_);
  std::abort();
}

}  // namespace ring::simt
