// Fluid: work that flows through shared resources at changing rates, and when each piece is done.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/units.h"
#include "sim/event_queue.h"
#include "sim/max_min.h"

namespace ring {

/// Equal flows form groups, and a group keeps one clock of work: how much each of its flows has had
/// since the clock was set to 0. A flow that starts at reading v with work w is done at reading
/// v + w, so flows of a group finish in a fixed order and need one event between them, and a change
/// of rate touches the group and not its flows.
///
/// Rates are solved once per instant, in `settle`. A group that shares nothing (the usual link of a
/// ring) is settled without the solver and needs no event when its latency is over.
class Fluid {
 public:
  /// Names a flow while it is there; chosen by the caller, and best small numbers.
  using Token = uint32_t;
  static constexpr Token kNoToken = 0xffffffff;

  /// Group g has its events in slot `first_slot + g` of the queue.
  Fluid(EventQueue& events, EventQueue::Slot first_slot)
      : events_(events), first_slot_(first_slot) {}

  /// Capacity in work per picosecond, positive.
  int add_resource(double capacity);
  /// Resources different from each other; `cap` in work per picosecond and flow.
  int add_group(std::span<const int> resources, double cap);

  /// Starts a flow that needs `work` and moves from `active_from_ps` (not before now) on. No flow
  /// of the same token may be there.
  void start(int group, Token token, double work, Picoseconds active_from_ps);
  void set_cap(int group, double cap);
  /// Progress per work taken from the resources, for all flows of the group: 0.5 halves the speed
  /// while occupying the resources as before.
  void set_efficiency(int group, double efficiency);

  /// To be called for a popped slot of ours: appends the tokens of the flows that are done now.
  void advance(int group, Picoseconds now_ps, std::vector<Token>& done);
  /// To be called when all events of this instant are through: new rates, new events.
  void settle(Picoseconds now_ps);
  bool is_settled() const { return unsettled_.empty(); }

  /// Groups whose rate was worked out; what is not touched does not count.
  int64_t solved_groups() const { return solver_.solved_groups() + solved_alone_; }
  void prefetch(int group) const { __builtin_prefetch(&groups_[static_cast<size_t>(group)]); }
  void prefetch_flow(Token token) const { __builtin_prefetch(&flows_[token]); }
  /// The flow of the group that ends first; kNoToken when none moves.
  Token first_to_end(int group) const { return groups_[static_cast<size_t>(group)].moving.first; }

 private:
  struct Flow {
    double work = 0;  ///< Waiting: work to do. Moving: reading of the clock when done.
    Picoseconds active_from_ps = 0;
    Token next = kNoToken;
  };
  struct FlowList {
    Token first = kNoToken, last = kNoToken;
    bool empty() const { return first == kNoToken; }
  };
  struct alignas(64) Group {
    double clock = 0;          ///< Work each moving flow has had.
    Picoseconds clock_ps = 0;  ///< When `clock` was right; ahead of now while all is latent.
    double rate = 0;           ///< Of the clock.
    double cap = 0;
    double width = 0;  ///< Least capacity of the resources, for groups that are private.
    FlowList waiting;  ///< By start of movement.
    FlowList moving;   ///< By end.
    int32_t moving_count = 0;
    bool is_private = true;  ///< No other group uses any of its resources.
    bool is_unsettled = false;
    bool has_efficiency = false;
  };

  void touch(int group);
  double efficiency(int group) const;
  void bring_to(Group& group, Picoseconds now_ps);
  void rewind_if_ahead(Group& group, Picoseconds now_ps);
  void set_moving(Group& group, Picoseconds now_ps);
  void settle_private(int number, Group& group);
  void settle_shared(Picoseconds now_ps);
  void schedule(int number, const Group& group);

  template <typename IsAfter>
  void insert(FlowList& list, Token token, IsAfter is_after);
  Token take_first(FlowList& list);

  EventQueue& events_;
  EventQueue::Slot first_slot_;
  MaxMinSystem solver_;
  std::vector<Group> groups_;
  std::vector<double> efficiencies_;
  std::vector<Flow> flows_;      ///< By token.
  std::vector<int> first_user_;  ///< Of each resource: -1, or the group that may be private on it.
  std::vector<int> unsettled_, shared_, changed_;
  int64_t solved_alone_ = 0;
};

}  // namespace ring
