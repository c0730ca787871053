#include "kernels/simt/shared_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ring::simt {
namespace {

constexpr uint32_t kPoisonWord = 0xffffffffU;  // A NaN in every format.

int warp_of(int thread) { return thread / kWarp; }
uint32_t lane_of(int thread) { return static_cast<uint32_t>(thread % kWarp); }

}  // namespace

SharedMemory::SharedMemory(int bytes, int warps)
    : warps_(warps),
      words_(static_cast<size_t>((bytes + 3) / 4)),
      shadow_(words_.size()),
      reads_(words_.size() * static_cast<size_t>(warps)),
      known_(static_cast<size_t>((warps + kCopiers) * (warps + kCopiers))),
      fences_(static_cast<size_t>(warps * kWarp)) {
  reset();
}

void SharedMemory::reset() {
  std::fill(words_.begin(), words_.end(), kPoisonWord);
  std::fill(shadow_.begin(), shadow_.end(), Shadow{});
  std::fill(reads_.begin(), reads_.end(), 0U);
  std::fill(known_.begin(), known_.end(), 0U);
  std::fill(fences_.begin(), fences_.end(), 0U);
}

std::string SharedMemory::check_range(SharedAddress at, int bytes) const {
  if (at % static_cast<uint32_t>(bytes) != 0)
    return fmt::format("shared address {} is not a multiple of {} bytes", at, bytes);
  if (at + static_cast<uint32_t>(bytes) > words_.size() * 4)
    return fmt::format("shared address {} is outside the {} bytes of the block", at,
                       words_.size() * 4);
  return {};
}

bool SharedMemory::is_ordered(int thread, int other_thread, uint32_t time) const {
  if (thread == other_thread) return true;
  return known(warp_of(thread), warp_of(other_thread)) > time;
}

std::string SharedMemory::check_read(int thread, uint32_t word) const {
  const Shadow& shadow = shadow_[word];
  switch (shadow.content) {
    case Content::kPoison:
      return fmt::format("reads shared address {} that was never written", word * 4);
    case Content::kInFlight:
      return fmt::format("reads shared address {} before waiting for the copy of thread {}",
                         word * 4, shadow.thread);
    case Content::kBarrier:
      return fmt::format("reads shared address {} within a barrier", word * 4);
    case Content::kWritten:
      break;
  }
  if (is_ordered(thread, shadow.thread, shadow.time)) return {};
  return fmt::format("reads shared address {} that thread {} wrote, without a barrier in between",
                     word * 4, shadow.thread);
}

std::string SharedMemory::check_write(int thread, uint32_t word) const {
  const Shadow& shadow = shadow_[word];
  if (shadow.content == Content::kBarrier)
    return fmt::format("writes shared address {} within a barrier", word * 4);
  if (shadow.content == Content::kInFlight)
    return fmt::format("writes shared address {} while a copy of thread {} is on its way there",
                       word * 4, shadow.thread);
  if (shadow.content == Content::kWritten && !is_ordered(thread, shadow.thread, shadow.time))
    return fmt::format("writes shared address {} that thread {} wrote, without a barrier between",
                       word * 4, shadow.thread);
  const int own = warp_of(thread);
  for (int warp = 0; warp < warps_; ++warp) {
    const uint32_t read = reads_[word * static_cast<size_t>(warps_) + static_cast<size_t>(warp)];
    if (read == 0 || known(own, warp) >= read / 64) continue;
    if (warp == own && read % 64 == lane_of(thread)) continue;
    return fmt::format("writes shared address {} that warp {} still reads", word * 4, warp);
  }
  return {};
}

void SharedMemory::mark_read(int warp, uint32_t lane, uint32_t word) {
  const uint32_t time = known(warp, warp) + 1;
  uint32_t& last = reads_[word * static_cast<size_t>(warps_) + static_cast<size_t>(warp)];
  const bool is_shared = last / 64 == time && last % 64 != lane;
  last = time * 64 + (is_shared ? kManyLanes : lane);
}

std::string SharedMemory::check_fence(uint32_t word) const {
  const Shadow& shadow = shadow_[word];
  if (warp_of(shadow.thread) >= warps_) return {};
  if (fences_[shadow.thread] > shadow.fences) return {};
  return fmt::format("a matrix unit reads shared address {} that thread {} wrote and did not fence",
                     word * 4, shadow.thread);
}

std::string SharedMemory::read_async(int warp, SharedAddress at, void* to) {
  std::string wrong = check_range(at, kCopyBytes);
  for (uint32_t i = 0; wrong.empty() && i < kCopyBytes / 4; ++i) {
    const uint32_t word = at / 4 + i;
    wrong = check_read(warp * kWarp, word);
    if (wrong.empty()) wrong = check_fence(word);
    mark_read(warp, kManyLanes, word);
  }
  if (wrong.empty()) std::memcpy(to, words_.data() + at / 4, kCopyBytes);
  return wrong;
}

std::string SharedMemory::read(int thread, SharedAddress at, void* to, int bytes) {
  std::string wrong = check_range(at, bytes);
  for (uint32_t i = 0; wrong.empty() && i < static_cast<uint32_t>(bytes) / 4; ++i) {
    const uint32_t word = at / 4 + i;
    const Shadow& shadow = shadow_[word];
    const bool is_good =
        shadow.content == Content::kWritten && is_ordered(thread, shadow.thread, shadow.time);
    if (!is_good) wrong = check_read(thread, word);
    mark_read(warp_of(thread), lane_of(thread), word);
  }
  if (wrong.empty()) std::memcpy(to, words_.data() + at / 4, static_cast<size_t>(bytes));
  return wrong;
}

std::string SharedMemory::write(int thread, SharedAddress at, const void* from, int bytes) {
  std::string wrong = check_range(at, bytes);
  const uint32_t time = known(warp_of(thread), warp_of(thread));
  for (uint32_t i = 0; wrong.empty() && i < static_cast<uint32_t>(bytes) / 4; ++i) {
    wrong = check_write(thread, at / 4 + i);
    shadow_[at / 4 + i] = {time, fences_[static_cast<size_t>(thread)],
                           static_cast<uint16_t>(thread), Content::kWritten};
  }
  if (wrong.empty()) std::memcpy(words_.data() + at / 4, from, static_cast<size_t>(bytes));
  return wrong;
}

std::string SharedMemory::begin_copy(int thread, SharedAddress at) {
  std::string wrong = check_range(at, kCopyBytes);
  for (uint32_t i = 0; wrong.empty() && i < kCopyBytes / 4; ++i) {
    const uint32_t word = at / 4 + i;
    wrong = check_write(thread, word);
    shadow_[word] = {0, 0, static_cast<uint16_t>(thread), Content::kInFlight};
    words_[word] = kPoisonWord;
  }
  return wrong;
}

void SharedMemory::land_copy(int thread, SharedAddress at, const void* from) {
  const uint32_t time = known(warp_of(thread), warp_of(thread));
  for (uint32_t i = 0; i < kCopyBytes / 4; ++i)
    shadow_[at / 4 + i] = {time, fences_[static_cast<size_t>(thread)],
                           static_cast<uint16_t>(thread), Content::kWritten};
  std::memcpy(words_.data() + at / 4, from, kCopyBytes);
}

void SharedMemory::land_bulk(int copier, SharedAddress at, const void* from) {
  const uint32_t time = known(copier, copier);
  for (uint32_t i = 0; i < kCopyBytes / 4; ++i)
    shadow_[at / 4 + i] = {time, 0, static_cast<uint16_t>(copier * kWarp), Content::kWritten};
  std::memcpy(words_.data() + at / 4, from, kCopyBytes);
}

std::string SharedMemory::claim(int thread, SharedAddress at) {
  constexpr int kBarrierBytes = 8;
  std::string wrong = check_range(at, kBarrierBytes);
  for (uint32_t word = at / 4; wrong.empty() && word < at / 4 + 2; ++word) {
    wrong = check_write(thread, word);
    shadow_[word].content = Content::kBarrier;
  }
  return wrong;
}

void SharedMemory::release(int warp, WarpClock& clock) {
  ++known(warp, warp);
  clock.resize(static_cast<size_t>(clocks()));
  for (int of = 0; of < clocks(); ++of) {
    uint32_t& time = clock[static_cast<size_t>(of)];
    time = std::max(time, known(warp, of));
  }
}

void SharedMemory::acquire(int warp, const WarpClock& clock) {
  for (size_t of = 0; of < clock.size(); ++of) {
    uint32_t& time = known(warp, static_cast<int>(of));
    time = std::max(time, clock[of]);
  }
}

void SharedMemory::sync_warp(int warp) { ++known(warp, warp); }

void SharedMemory::sync_warps(uint32_t mask) {
  std::vector<uint32_t> joined(static_cast<size_t>(clocks()), 0U);
  for (int warp = 0; warp < warps_; ++warp) {
    if (((mask >> warp) & 1U) == 0) continue;
    ++known(warp, warp);
    for (int of = 0; of < clocks(); ++of) {
      uint32_t& time = joined[static_cast<size_t>(of)];
      time = std::max(time, known(warp, of));
    }
  }
  for (int warp = 0; warp < warps_; ++warp) {
    if (((mask >> warp) & 1U) == 0) continue;
    for (int of = 0; of < clocks(); ++of) known(warp, of) = joined[static_cast<size_t>(of)];
  }
}

}  // namespace ring::simt
