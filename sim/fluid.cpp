#include "sim/fluid.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace ring {

namespace {

/// Events are whole picoseconds: what is left after half of one is rounding.
constexpr double kRoundingPs = 0.5 * (1 + 1e-9);

Picoseconds after(Picoseconds start_ps, double duration_ps) {
  constexpr double kLongest = 9.2e18;
  if (!(static_cast<double>(start_ps) + duration_ps < kLongest)) {
    throw_usage("the simulated time leaves 64 bits of picoseconds (106 days)",
                "check the capacities and sizes for a wrong unit");
  }
  return start_ps + std::llround(duration_ps);
}

}  // namespace

template <typename IsAfter>
void Fluid::FlowList::insert(const Flow& flow, IsAfter is_after) {
  if (head > 32 && head * 2 > flows.size()) {
    flows.erase(flows.begin(), flows.begin() + static_cast<std::ptrdiff_t>(head));
    head = 0;
  }
  if (empty() || !is_after(flows.back(), flow)) {
    flows.push_back(flow);
    return;
  }
  const auto begin = flows.begin() + static_cast<std::ptrdiff_t>(head);
  flows.insert(std::upper_bound(begin, flows.end(), flow,
                                [&](const Flow& a, const Flow& b) { return is_after(b, a); }),
               flow);
}

int Fluid::add_resource(double capacity) {
  first_user_.push_back(-1);
  return solver_.add_resource(capacity);
}

int Fluid::add_group(std::span<const int> resources, double cap) {
  const int number = solver_.add_group(resources, cap);
  Group& group = groups_.emplace_back();
  events_.reserve_slots(first_slot_ + groups_.size());
  group.cap = cap;
  group.width = MaxMinSystem::kUnlimited;
  for (const int resource : resources) {
    group.width = std::min(group.width, solver_.capacity(resource));
  }
  for (const int resource : resources) {
    int& first = first_user_[static_cast<size_t>(resource)];
    if (first < 0) {
      first = number;
      continue;
    }
    groups_[static_cast<size_t>(number)].is_private = false;
    Group& other = groups_[static_cast<size_t>(first)];
    if (!other.is_private) continue;
    other.is_private = false;
    touch(first);
  }
  return number;
}

void Fluid::touch(int group) {
  Group& touched = groups_[static_cast<size_t>(group)];
  if (touched.is_unsettled) return;
  touched.is_unsettled = true;
  unsettled_.push_back(group);
}

void Fluid::start(int group, Token token, double work, Picoseconds active_from_ps) {
  groups_[static_cast<size_t>(group)].waiting.insert(
      {work, token, active_from_ps},
      [](const Flow& a, const Flow& b) { return a.active_from_ps > b.active_from_ps; });
  touch(group);
}

void Fluid::set_cap(int group, double cap) {
  groups_[static_cast<size_t>(group)].cap = cap;
  solver_.set_cap(group, cap);
  touch(group);
}

void Fluid::set_efficiency(int group, double efficiency) {
  Group& changed = groups_[static_cast<size_t>(group)];
  if (changed.efficiency == efficiency) return;
  changed.efficiency = efficiency;
  touch(group);
}

void Fluid::bring_to(Group& group, Picoseconds now_ps) {
  if (group.clock_ps >= now_ps) return;
  if (!group.moving.empty()) {
    group.clock += group.rate * static_cast<double>(now_ps - group.clock_ps);
  }
  group.clock_ps = now_ps;
}

void Fluid::advance(int number, Picoseconds now_ps, std::vector<Token>& done) {
  Group& group = groups_[static_cast<size_t>(number)];
  bring_to(group, now_ps);
  const double reached = group.clock + group.rate * kRoundingPs;
  while (!group.moving.empty() && group.moving.front().work <= reached) {
    done.push_back(group.moving.front().token);
    group.moving.pop();
  }
  touch(number);
}

/// A private group may have been set to a start of movement that lies ahead; take that back, since
/// other flows may come in before.
void Fluid::rewind_if_ahead(Group& group, Picoseconds now_ps) {
  if (group.clock_ps <= now_ps) return;
  group.waiting.flows.insert(
      group.waiting.flows.begin() + static_cast<std::ptrdiff_t>(group.waiting.head),
      group.moving.flows.begin() + static_cast<std::ptrdiff_t>(group.moving.head),
      group.moving.flows.end());
  group.moving.clear();
  group.clock = 0;
  group.clock_ps = now_ps;
  std::stable_sort(group.waiting.flows.begin() + static_cast<std::ptrdiff_t>(group.waiting.head),
                   group.waiting.flows.end(), [](const Flow& a, const Flow& b) {
                     return a.active_from_ps < b.active_from_ps;
                   });
}

void Fluid::set_moving(Group& group, Picoseconds now_ps) {
  while (!group.waiting.empty() && group.waiting.front().active_from_ps <= now_ps) {
    if (group.moving.empty()) group.clock = 0;
    Flow flow = group.waiting.front();
    group.waiting.pop();
    flow.work += group.clock;
    group.moving.insert(flow, [](const Flow& a, const Flow& b) { return a.work > b.work; });
  }
}

void Fluid::settle_private(Group& group) {
  if (group.moving.empty() && !group.waiting.empty()) {
    group.clock_ps = group.waiting.front().active_from_ps;
    set_moving(group, group.clock_ps);
  }
  if (group.moving.empty()) return;
  ++solved_alone_;
  const double flows = static_cast<double>(group.moving.size());
  group.rate = std::min(group.cap, group.width / flows) * group.efficiency;
}

void Fluid::schedule(int number) {
  const Group& group = groups_[static_cast<size_t>(number)];
  const EventQueue::Slot slot = first_slot_ + static_cast<EventQueue::Slot>(number);
  Picoseconds next_ps = std::numeric_limits<Picoseconds>::max();
  if (!group.waiting.empty()) next_ps = group.waiting.front().active_from_ps;
  if (!group.moving.empty()) {
    const double left = std::max(group.moving.front().work - group.clock, 0.0);
    next_ps = std::min(next_ps, after(group.clock_ps, left / group.rate));
  } else if (group.waiting.empty()) {
    events_.cancel(slot);
    return;
  }
  events_.schedule(slot, next_ps);
}

void Fluid::settle(Picoseconds now_ps) {
  for (const int number : unsettled_) {
    Group& group = groups_[static_cast<size_t>(number)];
    bring_to(group, now_ps);
    rewind_if_ahead(group, now_ps);
    set_moving(group, now_ps);
    if (group.is_private) {
      settle_private(group);
    } else {
      solver_.set_flows(number, static_cast<int>(group.moving.size()));
    }
  }
  changed_.clear();
  solver_.solve(changed_);
  for (const int number : changed_) {
    Group& group = groups_[static_cast<size_t>(number)];
    const double rate = solver_.rate(number) * group.efficiency;
    if (rate == group.rate && !group.is_unsettled) continue;
    bring_to(group, now_ps);
    group.rate = rate;
    if (!group.is_unsettled) schedule(number);
  }
  for (const int number : unsettled_) {
    Group& group = groups_[static_cast<size_t>(number)];
    group.is_unsettled = false;
    if (!group.is_private && !group.moving.empty()) {
      group.rate = solver_.rate(number) * group.efficiency;
    }
    schedule(number);
  }
  unsettled_.clear();
}

}  // namespace ring
