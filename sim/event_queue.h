// EventQueue: at most one pending event per slot, popped by (time, order of scheduling).
#pragma once

#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/units.h"

namespace ring {

/// A slot is something that has one next event: a lane, a flow group. Scheduling a slot again moves
/// its event, so nothing stale is ever popped. A heap of four children a node: a node's children
/// fill one cache line.
class EventQueue {
 public:
  using Slot = uint32_t;

  /// Makes slots 0 .. count - 1 known; never shrinks.
  void reserve_slots(size_t count) {
    RING_ASSERT(count < (size_t{1} << kSlotBits));
    if (count > position_.size()) position_.resize(count, kNowhere);
  }

  bool empty() const { return heap_.empty(); }
  Picoseconds next_time_ps() const { return heap_.front().time_ps; }

  Slot next_slot() const { return slot_of(heap_.front()); }

  /// An event already pending at exactly this time keeps its place.
  void schedule(Slot slot, Picoseconds time_ps) {
    const Entry entry{time_ps, (sequence_++ << kSlotBits) | slot};
    const uint32_t at = position_[slot];
    if (at == kNowhere) {
      heap_.push_back(entry);
      sift_up(heap_.size() - 1, entry);
    } else if (time_ps != heap_[at].time_ps) {
      place(at, entry);
    }
  }

  void cancel(Slot slot) {
    const uint32_t at = position_[slot];
    if (at != kNowhere) remove(at);
  }

  Slot pop() {
    const Slot slot = slot_of(heap_.front());
    remove(0);
    return slot;
  }

 private:
  static constexpr int kSlotBits = 24;
  static constexpr uint32_t kNowhere = 0xffffffff;
  static constexpr size_t kChildren = 4;

  struct Entry {
    Picoseconds time_ps;
    uint64_t order;  ///< Sequence number above, slot below.
    bool operator<(const Entry& other) const {
      return time_ps != other.time_ps ? time_ps < other.time_ps : order < other.order;
    }
  };

  static Slot slot_of(const Entry& entry) {
    return static_cast<Slot>(entry.order & ((uint64_t{1} << kSlotBits) - 1));
  }

  void put(size_t at, const Entry& entry) {
    heap_[at] = entry;
    position_[slot_of(entry)] = static_cast<uint32_t>(at);
  }

  void remove(size_t at) {
    position_[slot_of(heap_[at])] = kNowhere;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (at < heap_.size()) place(at, last);
  }

  void place(size_t at, const Entry& entry) {
    if (at > 0 && entry < heap_[(at - 1) / kChildren]) {
      sift_up(at, entry);
    } else {
      sift_down(at, entry);
    }
  }

  void sift_up(size_t at, const Entry& entry) {
    while (at > 0) {
      const size_t parent = (at - 1) / kChildren;
      if (!(entry < heap_[parent])) break;
      put(at, heap_[parent]);
      at = parent;
    }
    put(at, entry);
  }

  void sift_down(size_t at, const Entry& entry) {
    const size_t size = heap_.size();
    for (;;) {
      const size_t first = at * kChildren + 1;
      if (first >= size) break;
      const size_t end = first + kChildren < size ? first + kChildren : size;
      size_t least = first;
      for (size_t child = first + 1; child < end; ++child) {
        if (heap_[child] < heap_[least]) least = child;
      }
      if (!(heap_[least] < entry)) break;
      put(at, heap_[least]);
      at = least;
    }
    put(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<uint32_t> position_;  ///< Of a slot's event in the heap.
  uint64_t sequence_ = 0;
};

}  // namespace ring
