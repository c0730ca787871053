#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>

namespace ring {
namespace {

/// The same promises, kept by an ordered set.
class PlainQueue {
 public:
  void schedule(uint32_t slot, Picoseconds time_ps) {
    const int64_t number = sequence_++;
    const auto known = events_.find(slot);
    if (known != events_.end() && std::get<0>(known->second) == time_ps) return;
    cancel(slot);
    events_[slot] = {time_ps, number, slot};
    order_.insert(events_[slot]);
  }
  void cancel(uint32_t slot) {
    const auto known = events_.find(slot);
    if (known == events_.end()) return;
    order_.erase(known->second);
    events_.erase(known);
  }
  bool empty() const { return order_.empty(); }
  std::pair<Picoseconds, uint32_t> pop() {
    const auto [time_ps, number, slot] = *order_.begin();
    cancel(slot);
    return {time_ps, slot};
  }

 private:
  std::map<uint32_t, std::tuple<Picoseconds, int64_t, uint32_t>> events_;
  std::set<std::tuple<Picoseconds, int64_t, uint32_t>> order_;
  int64_t sequence_ = 0;
};

/// How far ahead of now events are scheduled.
enum class Spread { kEven, kEqual, kClusters, kOutliers, kHuge };

Picoseconds ahead(Spread spread, std::mt19937_64& random) {
  const auto below = [&](int64_t limit) {
    return static_cast<Picoseconds>(random() % static_cast<uint64_t>(limit));
  };
  switch (spread) {
    case Spread::kEven:
      return below(1'000'000);
    case Spread::kEqual:
      return 1000;
    case Spread::kClusters:
      return 1'000'000 * below(3) + below(4);
    case Spread::kOutliers:
      return below(100) == 0 ? below(1'000'000'000'000) : below(1000);
    case Spread::kHuge:
      return below(int64_t{1} << 46);
  }
  return 0;
}

void compare_with_plain_queue(Spread spread, uint32_t slots, uint64_t seed) {
  std::mt19937_64 random(seed);
  EventQueue queue;
  PlainQueue plain;
  queue.reserve_slots(slots);
  Picoseconds now_ps = 0;
  const auto schedule = [&](uint32_t slot) {
    const Picoseconds time_ps = now_ps + ahead(spread, random);
    queue.schedule(slot, time_ps);
    plain.schedule(slot, time_ps);
  };
  for (uint32_t slot = 0; slot < slots; ++slot) schedule(slot);
  for (int i = 0; i < 20'000; ++i) {
    const auto slot = static_cast<uint32_t>(random() % slots);
    const uint64_t choice = random() % 16;
    if (choice < 9) {
      schedule(slot);
    } else if (choice == 9) {
      queue.cancel(slot);
      plain.cancel(slot);
    } else if (!plain.empty()) {
      const auto [time_ps, expected] = plain.pop();
      ASSERT_FALSE(queue.empty());
      ASSERT_EQ(queue.next_time_ps(), time_ps);
      ASSERT_EQ(queue.next_slot(), expected);
      ASSERT_EQ(queue.pop(), expected);
      now_ps = time_ps;
    }
    ASSERT_EQ(queue.empty(), plain.empty());
  }
  while (!plain.empty()) {
    const auto [time_ps, expected] = plain.pop();
    ASSERT_EQ(queue.next_time_ps(), time_ps);
    ASSERT_EQ(queue.pop(), expected);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, PopsAsAnOrderedSetDoes) {
  for (const Spread spread :
       {Spread::kEven, Spread::kEqual, Spread::kClusters, Spread::kOutliers, Spread::kHuge}) {
    for (const uint32_t slots : {1u, 7u, 63u, 65u, 129u, 1000u, 5000u}) {
      SCOPED_TRACE(testing::Message()
                   << "spread " << static_cast<int>(spread) << ", slots " << slots);
      ASSERT_NO_FATAL_FAILURE(compare_with_plain_queue(spread, slots, slots));
    }
  }
}

TEST(EventQueue, EqualTimesComeInTheOrderOfScheduling) {
  EventQueue queue;
  queue.reserve_slots(3000);
  for (uint32_t slot = 3000; slot-- > 0;) queue.schedule(slot, 5);
  queue.schedule(2999, 5);  // Keeps its place.
  for (uint32_t slot = 3000; slot-- > 0;) ASSERT_EQ(queue.pop(), slot);
}

}  // namespace
}  // namespace ring
