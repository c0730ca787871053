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
  return start_ps + static_cast<Picoseconds>(duration_ps + 0.5);
}

}  // namespace

/// Keeps the list in order; equal flows stay in the order of their insertion.
template <typename IsAfter>
void Fluid::insert(FlowList& list, Token token, IsAfter is_after) {
  Flow& flow = flows_[token];
  if (list.empty()) {
    flow.next = kNoToken;
    list = {token, token};
  } else if (!is_after(flows_[list.last], flow)) {
    flow.next = kNoToken;
    flows_[list.last].next = token;
    list.last = token;
  } else {
    Token* link = &list.first;
    while (!is_after(flows_[*link], flow)) link = &flows_[*link].next;
    flow.next = *link;
    *link = token;
  }
}

Fluid::Token Fluid::take_first(FlowList& list) {
  const Token token = list.first;
  list.first = flows_[token].next;
  if (list.first == kNoToken) list.last = kNoToken;
  return token;
}

int Fluid::add_resource(double capacity) {
  first_user_.push_back(-1);
  return solver_.add_resource(capacity);
}

int Fluid::add_group(std::span<const int> resources, double cap) {
  const int number = solver_.add_group(resources, cap);
  Group& group = groups_.emplace_back();
  efficiencies_.push_back(1);
  events_.reserve_slots(first_slot_ + groups_.size());
  group.cap = cap;
  group.width = MaxMinSystem::kUnlimited;
  for (const int resource : resources) {
    group.width = std::min(group.width, solver_.capacity(resource));
    int& first = first_user_[static_cast<size_t>(resource)];
    if (first < 0) {
      first = number;
      continue;
    }
    group.is_private = false;
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
  if (token >= flows_.size()) flows_.resize(2 * static_cast<size_t>(token) + 64);
  flows_[token].work = work;
  flows_[token].active_from_ps = active_from_ps;
  insert(groups_[static_cast<size_t>(group)].waiting, token,
         [](const Flow& a, const Flow& b) { return a.active_from_ps > b.active_from_ps; });
  touch(group);
}

void Fluid::set_cap(int group, double cap) {
  groups_[static_cast<size_t>(group)].cap = cap;
  solver_.set_cap(group, cap);
  touch(group);
}

void Fluid::set_efficiency(int group, double efficiency) {
  double& known = efficiencies_[static_cast<size_t>(group)];
  if (known == efficiency) return;
  known = efficiency;
  groups_[static_cast<size_t>(group)].has_efficiency = true;
  touch(group);
}

double Fluid::efficiency(int group) const {
  const auto index = static_cast<size_t>(group);
  return groups_[index].has_efficiency ? efficiencies_[index] : 1;
}

void Fluid::bring_to(Group& group, Picoseconds now_ps) {
  if (group.clock_ps >= now_ps) return;
  if (group.moving_count > 0) {
    group.clock += group.rate * static_cast<double>(now_ps - group.clock_ps);
  }
  group.clock_ps = now_ps;
}

void Fluid::advance(int number, Picoseconds now_ps, std::vector<Token>& done) {
  Group& group = groups_[static_cast<size_t>(number)];
  bring_to(group, now_ps);
  const double reached = group.clock + group.rate * kRoundingPs;
  while (!group.moving.empty() && flows_[group.moving.first].work <= reached) {
    done.push_back(take_first(group.moving));
    --group.moving_count;
  }
  touch(number);
}

/// A private group may have been set to a start of movement that lies ahead; take that back, since
/// other flows may come in before. Its clock is 0 then, so all its flows have their work before
/// them.
void Fluid::rewind_if_ahead(Group& group, Picoseconds now_ps) {
  if (group.clock_ps <= now_ps) return;
  group.clock_ps = now_ps;
  while (!group.moving.empty()) {
    insert(group.waiting, take_first(group.moving),
           [](const Flow& a, const Flow& b) { return a.active_from_ps >= b.active_from_ps; });
  }
  group.moving_count = 0;
}

void Fluid::set_moving(Group& group, Picoseconds now_ps) {
  while (!group.waiting.empty() && flows_[group.waiting.first].active_from_ps <= now_ps) {
    if (group.moving_count++ == 0) group.clock = 0;
    const Token token = take_first(group.waiting);
    flows_[token].work += group.clock;
    insert(group.moving, token, [](const Flow& a, const Flow& b) { return a.work > b.work; });
  }
}

void Fluid::settle_private(int number, Group& group) {
  if (group.moving_count == 0) {
    if (group.waiting.empty()) {
      events_.cancel(first_slot_ + static_cast<EventQueue::Slot>(number));
      return;
    }
    group.clock_ps = flows_[group.waiting.first].active_from_ps;
    set_moving(group, group.clock_ps);
  }
  ++solved_alone_;
  const double share = group.moving_count == 1 ? group.width : group.width / group.moving_count;
  group.rate = std::min(group.cap, share) * efficiency(number);
  schedule(number, group);
}

void Fluid::schedule(int number, const Group& group) {
  const EventQueue::Slot slot = first_slot_ + static_cast<EventQueue::Slot>(number);
  Picoseconds next_ps = std::numeric_limits<Picoseconds>::max();
  if (!group.waiting.empty()) next_ps = flows_[group.waiting.first].active_from_ps;
  if (!group.moving.empty()) {
    const double left = std::max(flows_[group.moving.first].work - group.clock, 0.0);
    next_ps = std::min(next_ps, after(group.clock_ps, left / group.rate));
  } else if (group.waiting.empty()) {
    events_.cancel(slot);
    return;
  }
  events_.schedule(slot, next_ps);
}

void Fluid::settle(Picoseconds now_ps) {
  shared_.clear();
  for (const int number : unsettled_) {
    Group& group = groups_[static_cast<size_t>(number)];
    bring_to(group, now_ps);
    rewind_if_ahead(group, now_ps);
    set_moving(group, now_ps);
    if (group.is_private) {
      settle_private(number, group);
      group.is_unsettled = false;
    } else {
      solver_.set_flows(number, group.moving_count);
      shared_.push_back(number);
    }
  }
  unsettled_.clear();
  if (!shared_.empty()) settle_shared(now_ps);
}

void Fluid::settle_shared(Picoseconds now_ps) {
  changed_.clear();
  solver_.solve(changed_);
  for (const int number : changed_) {
    Group& group = groups_[static_cast<size_t>(number)];
    if (group.is_unsettled) continue;
    const double rate = solver_.rate(number) * efficiency(number);
    if (rate == group.rate) continue;
    bring_to(group, now_ps);
    group.rate = rate;
    schedule(number, group);
  }
  for (const int number : shared_) {
    Group& group = groups_[static_cast<size_t>(number)];
    group.is_unsettled = false;
    if (group.moving_count > 0) group.rate = solver_.rate(number) * efficiency(number);
    schedule(number, group);
  }
}

}  // namespace ring
