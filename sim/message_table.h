// MessageTable: the messages between one pair of ranks that were posted and are not yet done.
#pragma once

#include <cstdint>
#include <vector>

namespace ring {

/// Maps message numbers to slots of a pool. Open addressing with linear probing.
class MessageTable {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  size_t size() const { return size_; }

  /// The slot of message `number`, or kNone.
  uint32_t find(int64_t number) const {
    if (size_ == 0) return kNone;
    for (size_t at = home(number);; at = next(at)) {
      if (entries_[at].slot == kNone || entries_[at].number == number) return entries_[at].slot;
    }
  }

  /// `number` must not be in the table.
  void insert(int64_t number, uint32_t slot) {
    if (2 * (size_ + 1) > entries_.size()) grow();
    put(number, slot);
    ++size_;
  }

  /// `number` must be in the table.
  void erase(int64_t number) {
    size_t hole = home(number);
    while (entries_[hole].number != number) hole = next(hole);
    --size_;
    for (size_t at = next(hole); entries_[at].slot != kNone; at = next(at)) {
      const size_t wish = home(entries_[at].number);
      // An entry may fill the hole unless its home lies behind the hole.
      if (((at - wish) & mask()) < ((at - hole) & mask())) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole] = Entry{};
  }

 private:
  struct Entry {
    int64_t number = -1;
    uint32_t slot = kNone;
  };

  size_t mask() const { return entries_.size() - 1; }
  size_t next(size_t at) const { return (at + 1) & mask(); }
  /// Neighbouring numbers lie side by side, and so do numbers that differ above bit 32 only a bit.
  size_t home(int64_t number) const {
    const auto bits = static_cast<uint64_t>(number);
    return static_cast<size_t>(bits ^ (bits >> 32) * 0x9e3779b1u) & mask();
  }

  void put(int64_t number, uint32_t slot) {
    size_t at = home(number);
    while (entries_[at].slot != kNone) at = next(at);
    entries_[at] = {number, slot};
  }

  void grow() {
    std::vector<Entry> old(entries_.empty() ? 4 : entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.slot != kNone) put(entry.number, entry.slot);
    }
  }

  std::vector<Entry> entries_;
  size_t size_ = 0;
};

}  // namespace ring
