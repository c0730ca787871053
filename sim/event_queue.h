// EventQueue: at most one pending event per slot, popped by (time, order of scheduling).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/error.h"
#include "core/units.h"

namespace ring {

/// A slot is something that has one next event: a lane, a flow group. Scheduling a slot again moves
/// its event, so nothing stale is ever popped.
///
/// The events before a horizon lie in a heap, and while they are few all of them do. Many are
/// spread over buckets of equal length of time beyond the horizon, unordered, and what comes later
/// still lies in one more list: when the heap runs empty the next bucket becomes the heap, and when
/// the buckets run out the list is spread over new ones (a calendar that is laid out anew as it is
/// used; Brown, CACM 31(10), 1988, and the ladder queues after it). The heap so stays small
/// whatever the number of slots. It has four children a node: they lie in two cache lines at most.
class EventQueue {
 public:
  using Slot = uint32_t;

  /// Makes slots 0 .. count - 1 known; never shrinks.
  void reserve_slots(size_t count) {
    RING_ASSERT(count < (size_t{1} << kSlotBits));
    if (count > places_.size()) places_.resize(count);
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
    const Place place = places_[slot];
    if (place.list == kNowhere) {
      insert(entry);
      return;
    }
    if (time_ps == time_of(entry_at(place))) return;
    if (place.list == kHeap && time_ps < horizon_ps_) {
      put_in_order(place.at, entry);
      return;
    }
    remove(slot);
    insert(entry);
  }

  void cancel(Slot slot) {
    if (places_[slot].list != kNowhere) remove(slot);
  }

  Slot pop() {
    const Slot slot = slot_of(heap_.front());
    places_[slot].list = kNowhere;
    remove_from_heap(0);
    return slot;
  }

 private:
  static constexpr int kSlotBits = 24;
  static constexpr size_t kChildren = 4;
  static constexpr size_t kBuckets = 1024;
  static constexpr size_t kFew = 64;  ///< Events that are best kept in one heap.
  static constexpr uint32_t kBeyond = kBuckets;
  static constexpr uint32_t kHeap = 0xfffffffe;
  static constexpr uint32_t kNowhere = 0xffffffff;
  static constexpr Picoseconds kForever = std::numeric_limits<Picoseconds>::max();

  /// Time above, then sequence number, then slot: one number that orders events.
  using Entry = unsigned __int128;

  /// Where the event of a slot lies: the heap, a bucket or beyond, and the number in it.
  struct Place {
    uint32_t list = kNowhere;
    uint32_t at = 0;
  };

  static Entry entry_of(Picoseconds time_ps, uint64_t sequence, Slot slot) {
    return (static_cast<Entry>(time_ps) << 64) | (sequence << kSlotBits) | slot;
  }
  static Picoseconds time_of(Entry entry) { return static_cast<Picoseconds>(entry >> 64); }
  static Slot slot_of(Entry entry) {
    return static_cast<Slot>(entry) & ((Slot{1} << kSlotBits) - 1);
  }
  Entry entry_at(Place place) const {
    return place.list == kHeap ? heap_[place.at] : far_[place.list][place.at];
  }

  void insert(Entry entry) {
    if (time_of(entry) < horizon_ps_) {
      push_to_heap(entry);
      if (heap_.size() > split_size_) split();
      return;
    }
    append(bucket_of(entry), entry);
    if (heap_.empty()) refill();
  }

  void remove(Slot slot) {
    const Place place = places_[slot];
    places_[slot].list = kNowhere;
    if (place.list == kHeap) {
      remove_from_heap(place.at);
      return;
    }
    std::vector<Entry>& list = far_[place.list];
    if (place.at + 1 < list.size()) {
      list[place.at] = list.back();
      places_[slot_of(list.back())].at = place.at;
    }
    list.pop_back();
    if (place.list != kBeyond) --in_buckets_;
  }

  // The events beyond the horizon.

  uint32_t bucket_of(Entry entry) const {
    const uint64_t number = static_cast<uint64_t>(time_of(entry) - base_ps_) >> shift_;
    return static_cast<uint32_t>(std::min<uint64_t>(number, kBeyond));
  }

  void append(uint32_t list, Entry entry) {
    places_[slot_of(entry)] = {list, static_cast<uint32_t>(far_[list].size())};
    far_[list].push_back(entry);
    if (list != kBeyond) ++in_buckets_;
  }

  /// The heap is empty: brings the next events into it, if there are any.
  void refill() {
    while (heap_.empty()) {
      if (in_buckets_ == 0) {
        if (far_.empty() || far_[kBeyond].empty()) return;
        spread();
        continue;
      }
      while (far_[next_bucket_].empty()) ++next_bucket_;
      std::vector<Entry>& bucket = far_[next_bucket_++];
      in_buckets_ -= bucket.size();
      for (const Entry entry : bucket) push_to_heap(entry);
      bucket.clear();
      set_horizon();
    }
  }

  void set_horizon() {
    const Entry end = static_cast<Entry>(base_ps_) + (static_cast<Entry>(next_bucket_) << shift_);
    horizon_ps_ = static_cast<Picoseconds>(std::min<Entry>(end, kForever));
  }

  /// The heap that holds all events has become large.
  void split() {
    if (horizon_ps_ != kForever) return;
    if (far_.empty()) far_.resize(kBuckets + 1);
    for (const Entry entry : heap_) append(kBeyond, entry);
    heap_.clear();
    refill();
  }

  /// The buckets are empty, and so is the heap: lays out new ones for what lies beyond. Two events
  /// a bucket, if they are spread evenly.
  void spread() {
    std::vector<Entry>& beyond = far_[kBeyond];
    const auto [first, last] = std::minmax_element(beyond.begin(), beyond.end());
    const auto range = static_cast<uint64_t>(time_of(*last) - time_of(*first));
    next_bucket_ = 0;
    if (beyond.size() <= kFew || range == 0) {
      horizon_ps_ = kForever;
      for (const Entry entry : beyond) push_to_heap(entry);
      beyond.clear();
      split_size_ = 2 * std::max(kFew, heap_.size());
      return;
    }
    base_ps_ = time_of(*first);
    const uint64_t buckets = std::min(kBuckets, beyond.size() / 2);
    shift_ = static_cast<int>(std::bit_width(range / buckets));
    std::vector<Entry> entries;
    entries.swap(beyond);
    for (const Entry entry : entries) append(bucket_of(entry), entry);
    set_horizon();
  }

  // The heap.

  void put(size_t at, Entry entry) {
    heap_[at] = entry;
    places_[slot_of(entry)] = {kHeap, static_cast<uint32_t>(at)};
  }

  void push_to_heap(Entry entry) {
    heap_.push_back(entry);
    sift_up(heap_.size() - 1, entry);
  }

  void remove_from_heap(size_t at) {
    const Entry last = heap_.back();
    heap_.pop_back();
    if (at < heap_.size()) {
      put_in_order(at, last);
    } else if (heap_.empty()) {
      refill();
    }
  }

  void put_in_order(size_t at, Entry entry) {
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
  std::vector<std::vector<Entry>> far_;  ///< Buckets, then what lies beyond; empty while not used.
  std::vector<Place> places_;            ///< By slot.
  uint64_t sequence_ = 0;
  Picoseconds horizon_ps_ = kForever;  ///< The heap has all events before it, and no others.
  Picoseconds base_ps_ = 0;            ///< Where the first bucket begins.
  int shift_ = 0;                      ///< A bucket is 2^shift_ picoseconds long.
  size_t next_bucket_ = 0;
  size_t in_buckets_ = 0;
  size_t split_size_ = 2 * kFew;  ///< Of a heap that holds all events.
};

}  // namespace ring
