// EventQueue: at most one pending event per slot, popped by (time, order of scheduling).
#pragma once

#include <cstdint>
#include <vector>

#include "core/error.h"
#include "core/units.h"

namespace ring {

/// A slot is something that has one next event: a lane, a flow group. Scheduling a slot again moves
/// its event, so nothing stale is ever popped. A heap of four children a node: the children of a
/// node lie in two cache lines at most.
class EventQueue {
 public:
  using Slot = uint32_t;

  /// Makes slots 0 .. count - 1 known; never shrinks.
  void reserve_slots(size_t count) {
    RING_ASSERT(count < (size_t{1} << kSlotBits));
    if (count > position_.size()) position_.resize(count, kNowhere);
  }

  bool empty() const { return heap_.empty(); }
  Picoseconds next_time_ps() const { return time_of(heap_.front()); }

  Slot next_slot() const { return slot_of(heap_.front()); }
  /// Calls `visit` with slots that come soon after the next one.
  template <typename Visit>
  void visit_soon(Visit visit) const {
    for (size_t at = 1; at <= kChildren && at < heap_.size(); ++at) visit(slot_of(heap_[at]));
  }

  /// An event already pending at exactly this time keeps its place.
  void schedule(Slot slot, Picoseconds time_ps) {
    const Entry entry = entry_of(time_ps, sequence_++, slot);
    const uint32_t at = position_[slot];
    if (at == kNowhere) {
      heap_.push_back(entry);
      sift_up(heap_.size() - 1, entry);
    } else if (time_ps != time_of(heap_[at])) {
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

  /// Time above, then sequence number, then slot: one number that orders events.
  using Entry = unsigned __int128;

  static Entry entry_of(Picoseconds time_ps, uint64_t sequence, Slot slot) {
    return (static_cast<Entry>(time_ps) << 64) | (sequence << kSlotBits) | slot;
  }
  static Picoseconds time_of(Entry entry) { return static_cast<Picoseconds>(entry >> 64); }
  static Slot slot_of(Entry entry) {
    return static_cast<Slot>(entry) & ((Slot{1} << kSlotBits) - 1);
  }

  void put(size_t at, Entry entry) {
    heap_[at] = entry;
    position_[slot_of(entry)] = static_cast<uint32_t>(at);
  }

  void remove(size_t at) {
    position_[slot_of(heap_[at])] = kNowhere;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (at < heap_.size()) place(at, last);
  }

  void place(size_t at, Entry entry) {
    if (at > 0 && entry < heap_[(at - 1) / kChildren]) {
      sift_up(at, entry);
    } else {
      sift_down(at, entry);
    }
  }

  void sift_up(size_t at, Entry entry) {
    while (at > 0) {
      const size_t parent = (at - 1) / kChildren;
      if (!(entry < heap_[parent])) break;
      put(at, heap_[parent]);
      at = parent;
    }
    put(at, entry);
  }

  /// The least of four: computed and not branched on, since no branch predictor can know it.
  size_t least_of_four(size_t first) const {
    const size_t a = first + static_cast<size_t>(heap_[first + 1] < heap_[first]);
    const size_t b = first + 2 + static_cast<size_t>(heap_[first + 3] < heap_[first + 2]);
    return a + static_cast<size_t>(heap_[b] < heap_[a]) * (b - a);
  }

  void sift_down(size_t at, Entry entry) {
    const size_t size = heap_.size();
    for (;;) {
      const size_t first = at * kChildren + 1;
      size_t least = first;
      if (first + kChildren <= size) {
        least = least_of_four(first);
      } else if (first >= size) {
        break;
      } else {
        for (size_t child = first + 1; child < size; ++child) {
          if (heap_[child] < heap_[least]) least = child;
        }
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
