#include "sim/max_min.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"

namespace ring {

int MaxMinSystem::add_resource(double capacity) {
  RING_ASSERT(capacity > 0);
  resources_.emplace_back().capacity = capacity;
  return static_cast<int>(resources_.size()) - 1;
}

int MaxMinSystem::add_group(std::span<const int> resources, double cap) {
  const int number = static_cast<int>(groups_.size());
  Group& group = groups_.emplace_back();
  group.first_use = static_cast<int>(uses_.size());
  group.use_count = static_cast<int>(resources.size());
  group.cap = cap;
  for (const int resource : resources) uses_.push_back({number, resource, -1});
  return number;
}

std::span<MaxMinSystem::Use> MaxMinSystem::uses_of(const Group& group) {
  return {uses_.data() + group.first_use, static_cast<size_t>(group.use_count)};
}

void MaxMinSystem::touch(int group) {
  Group& touched = groups_[static_cast<size_t>(group)];
  if (touched.is_touched) return;
  touched.is_touched = true;
  touched_.push_back(group);
}

void MaxMinSystem::set_capacity(int resource, double capacity) {
  RING_ASSERT(capacity > 0);
  Resource& changed = resources_[static_cast<size_t>(resource)];
  changed.capacity = capacity;
  for (const int use : changed.uses) touch(uses_[static_cast<size_t>(use)].group);
}

void MaxMinSystem::set_cap(int group, double cap) {
  Group& changed = groups_[static_cast<size_t>(group)];
  if (changed.cap == cap) return;
  changed.cap = cap;
  if (changed.flows > 0) touch(group);
}

void MaxMinSystem::set_flows(int group, int flows) {
  Group& changed = groups_[static_cast<size_t>(group)];
  if (changed.flows == flows) return;
  if (changed.flows == 0) enter(changed);
  if (flows == 0) leave(changed);
  changed.flows = flows;
  touch(group);
}

void MaxMinSystem::enter(Group& group) {
  int number = group.first_use;
  for (Use& use : uses_of(group)) {
    std::vector<int>& list = resources_[static_cast<size_t>(use.resource)].uses;
    use.place = static_cast<int>(list.size());
    list.push_back(number++);
  }
}

void MaxMinSystem::leave(Group& group) {
  for (Use& use : uses_of(group)) {
    std::vector<int>& list = resources_[static_cast<size_t>(use.resource)].uses;
    const int last = list.back();
    list[static_cast<size_t>(use.place)] = last;
    uses_[static_cast<size_t>(last)].place = use.place;
    list.pop_back();
    use.place = -1;
  }
}

void MaxMinSystem::solve(std::vector<int>& changed) {
  ++visit_;
  for (const int number : touched_) {
    Group& group = groups_[static_cast<size_t>(number)];
    group.is_touched = false;
    if (group.visit == visit_) continue;
    if (solve_alone(group)) {
      group.visit = visit_;
      if (group.flows > 0) changed.push_back(number);
      continue;
    }
    collect(number);
    fill();
    solved_groups_ += static_cast<int64_t>(component_groups_.size());
    changed.insert(changed.end(), component_groups_.begin(), component_groups_.end());
  }
  touched_.clear();
}

/// The common case: nobody else uses any of the group's resources. They count as visited then: a
/// group that has just left one of them must not solve this one again.
bool MaxMinSystem::solve_alone(Group& group) {
  const size_t own = group.flows > 0 ? 1 : 0;
  double rate = std::min(group.cap, kUnlimited);
  for (const Use& use : uses_of(group)) {
    const Resource& resource = resources_[static_cast<size_t>(use.resource)];
    if (resource.uses.size() != own) return false;
    if (own > 0) rate = std::min(rate, resource.capacity / group.flows);
  }
  for (const Use& use : uses_of(group)) {
    resources_[static_cast<size_t>(use.resource)].visit = visit_;
  }
  group.rate = own > 0 ? rate : 0;
  ++solved_groups_;
  return true;
}

/// Finds the groups with flows that are connected with `seed` through resources, and these.
void MaxMinSystem::collect(int seed) {
  component_groups_.clear();
  component_resources_.clear();
  Group& first = groups_[static_cast<size_t>(seed)];
  first.visit = visit_;
  if (first.flows > 0) {
    component_groups_.push_back(seed);
  } else {
    first.rate = 0;
  }
  for (const Use& use : uses_of(first)) visit_resource(use.resource);
  for (size_t next = first.flows > 0 ? 1 : 0; next < component_groups_.size(); ++next) {
    const Group& group = groups_[static_cast<size_t>(component_groups_[next])];
    for (const Use& use : uses_of(group)) visit_resource(use.resource);
  }
}

void MaxMinSystem::visit_resource(int number) {
  Resource& resource = resources_[static_cast<size_t>(number)];
  if (resource.visit == visit_) return;
  resource.visit = visit_;
  resource.left = resource.capacity;
  resource.flows = 0;
  component_resources_.push_back(number);
  for (const int use : resource.uses) {
    const int user = uses_[static_cast<size_t>(use)].group;
    Group& group = groups_[static_cast<size_t>(user)];
    resource.flows += group.flows;
    if (group.visit == visit_) continue;
    group.visit = visit_;
    component_groups_.push_back(user);
  }
}

void MaxMinSystem::fill() {
  shares_.clear();
  by_cap_.clear();
  for (const int number : component_groups_) {
    Group& group = groups_[static_cast<size_t>(number)];
    group.has_rate = false;
    if (group.cap < kUnlimited || group.use_count == 0) by_cap_.push_back(number);
  }
  const auto cap_of = [this](int group) { return groups_[static_cast<size_t>(group)].cap; };
  std::sort(by_cap_.begin(), by_cap_.end(),
            [&](int a, int b) { return cap_of(a) != cap_of(b) ? cap_of(a) < cap_of(b) : a < b; });
  for (const int number : component_resources_) {
    Resource& resource = resources_[static_cast<size_t>(number)];
    if (resource.flows == 0) continue;
    resource.share = resource.left / static_cast<double>(resource.flows);
    shares_.push_back({resource.share, number});
  }
  std::make_heap(shares_.begin(), shares_.end(), std::greater<>());

  auto capped = by_cap_.begin();
  for (;;) {
    while (capped != by_cap_.end() && groups_[static_cast<size_t>(*capped)].has_rate) ++capped;
    double share = 0;
    int bottleneck = -1;
    const bool has_bottleneck = next_bottleneck(share, bottleneck);
    if (capped != by_cap_.end() && (!has_bottleneck || cap_of(*capped) <= share)) {
      freeze(*capped, std::min(cap_of(*capped), kUnlimited));
    } else if (has_bottleneck) {
      for (const int use : resources_[static_cast<size_t>(bottleneck)].uses) {
        const int group = uses_[static_cast<size_t>(use)].group;
        if (!groups_[static_cast<size_t>(group)].has_rate) freeze(group, share);
      }
    } else {
      return;
    }
  }
}

/// The resource that gives its flows least. Shares only grow while flows are frozen, so an entry
/// that is out of date is put back with its present share.
bool MaxMinSystem::next_bottleneck(double& share, int& resource) {
  while (!shares_.empty()) {
    const Share top = shares_.front();
    const Resource& candidate = resources_[static_cast<size_t>(top.resource)];
    if (candidate.flows > 0 && candidate.share == top.share) {
      share = top.share;
      resource = top.resource;
      return true;
    }
    std::pop_heap(shares_.begin(), shares_.end(), std::greater<>());
    shares_.pop_back();
    if (candidate.flows > 0) {
      shares_.push_back({candidate.share, top.resource});
      std::push_heap(shares_.begin(), shares_.end(), std::greater<>());
    }
  }
  return false;
}

void MaxMinSystem::freeze(int number, double rate) {
  Group& group = groups_[static_cast<size_t>(number)];
  group.has_rate = true;
  group.rate = rate;
  for (const Use& use : uses_of(group)) {
    Resource& resource = resources_[static_cast<size_t>(use.resource)];
    resource.flows -= group.flows;
    resource.left -= rate * group.flows;
    if (resource.flows == 0) continue;
    // Rounding must not take a share below the level that is reached already.
    resource.share = std::max(resource.left / static_cast<double>(resource.flows), rate);
  }
}

}  // namespace ring
