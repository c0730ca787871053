// Plays the program without time; what is left over waits for ever.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "core/program_check_parts.h"

namespace ring::check {
namespace {

class Player {
 public:
  Player(const RingProgram& program, const Match& match) : program_(program), match_(match) {
    const size_t lanes = static_cast<size_t>(program.lanes);
    for (int rank = 0; rank < program.ranks(); ++rank) {
      const auto& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
      std::vector<std::vector<int64_t>> by_lane(lanes);
      for (size_t i = 0; i < ops.size(); ++i) {
        by_lane[static_cast<size_t>(ops[i].lane)].push_back(static_cast<int64_t>(i));
      }
      lanes_.push_back(std::move(by_lane));
      done_.emplace_back(lanes, 0);
      is_queued_.emplace_back(lanes, false);
    }
  }

  void play() {
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      for (int lane = 0; lane < program_.lanes; ++lane) wake(rank, lane);
    }
    while (!queue_.empty()) {
      const auto [rank, lane] = queue_.front();
      queue_.pop_front();
      is_queued_[static_cast<size_t>(rank)][static_cast<size_t>(lane)] = false;
      while (try_head(rank, lane)) {
      }
    }
  }

  std::optional<OpId> head(int rank, int lane) const {
    const auto& ops = lanes_[static_cast<size_t>(rank)][static_cast<size_t>(lane)];
    const auto done =
        static_cast<size_t>(done_[static_cast<size_t>(rank)][static_cast<size_t>(lane)]);
    if (done == ops.size()) return std::nullopt;
    return OpId{rank, ops[done]};
  }

  /// The op, at the head of its lane, for which the blocked `id` waits; nothing when a send or
  /// receive has no partner.
  std::optional<OpId> waits_for(OpId id) const {
    const RankProgram& ops = program_.rank_programs[static_cast<size_t>(id.rank)];
    const Op& op = program_.op(id);
    for (const LanePoint& dep : ops.deps_of(op)) {
      if (!is_reached(id.rank, dep)) return head(id.rank, dep.lane);
    }
    const std::optional<OpId> partner = partner_of(id);
    if (!partner) return std::nullopt;
    return head(partner->rank, program_.op(*partner).lane);
  }

 private:
  bool is_reached(int rank, const LanePoint& point) const {
    return done_[static_cast<size_t>(rank)][static_cast<size_t>(point.lane)] > point.position;
  }

  bool is_posted(OpId id) const {
    const Op& op = program_.op(id);
    if (is_reached(id.rank, {op.lane, op.lane_position})) return true;
    if (head(id.rank, op.lane) != id) return false;
    const auto deps = program_.rank_programs[static_cast<size_t>(id.rank)].deps_of(op);
    return std::all_of(deps.begin(), deps.end(),
                       [&](const LanePoint& dep) { return is_reached(id.rank, dep); });
  }

  std::optional<OpId> partner_of(OpId id) const {
    const auto& partners =
        program_.op(id).kind == OpKind::kSend ? match_.receive_of : match_.send_of;
    const auto found = partners.find(id);
    if (found == partners.end()) return std::nullopt;
    return found->second;
  }

  void wake(int rank, int lane) {
    auto is_queued = is_queued_[static_cast<size_t>(rank)].begin() + lane;
    if (*is_queued) return;
    *is_queued = true;
    queue_.emplace_back(rank, lane);
  }

  void finish(OpId id) {
    ++done_[static_cast<size_t>(id.rank)][static_cast<size_t>(program_.op(id).lane)];
    for (int lane = 0; lane < program_.lanes; ++lane) wake(id.rank, lane);
  }

  /// Finishes the head of the lane if it can finish now.
  bool try_head(int rank, int lane) {
    const std::optional<OpId> id = head(rank, lane);
    if (!id || !is_posted(*id)) return false;
    const Op& op = program_.op(*id);
    const bool is_send = op.kind == OpKind::kSend;
    if (!is_send && op.kind != OpKind::kReceive) {
      finish(*id);
      return true;
    }
    const std::optional<OpId> partner = partner_of(*id);
    if (is_send && op.protocol == Protocol::kEager) {
      finish(*id);
      if (partner) wake(partner->rank, program_.op(*partner).lane);
      return true;
    }
    if (!partner || !is_posted(*partner)) return false;
    const bool is_partner_done = is_reached(
        partner->rank, {program_.op(*partner).lane, program_.op(*partner).lane_position});
    if (!is_send && program_.op(*partner).protocol == Protocol::kEager && !is_partner_done) {
      return false;
    }
    finish(*id);
    if (!is_partner_done) finish(*partner);
    return true;
  }

  const RingProgram& program_;
  const Match& match_;
  std::vector<std::vector<std::vector<int64_t>>> lanes_;  // (rank, lane) -> op indices.
  std::vector<std::vector<int64_t>> done_;                // (rank, lane) -> ops done.
  std::vector<std::vector<bool>> is_queued_;
  std::deque<std::pair<int, int>> queue_;
};

void report_cycle(const RingProgram& program, std::vector<OpId> chain, size_t from,
                  std::vector<Fault>& faults) {
  chain.erase(chain.begin(), chain.begin() + static_cast<ptrdiff_t>(from));
  // The cycle begins at its smallest op, so that the report does not depend on where it was met.
  std::rotate(chain.begin(), std::min_element(chain.begin(), chain.end()), chain.end());
  std::string text = fmt::format("{} ops wait for each other: ", chain.size());
  static constexpr size_t kMostShown = 12;
  for (size_t i = 0; i < std::min(chain.size(), kMostShown); ++i) {
    text += describe(program, chain[i]) + " waits for ";
  }
  if (chain.size() > kMostShown) text += fmt::format("... {} more ...", chain.size() - kMostShown);
  text += describe(program, chain.front());
  faults.insert(faults.begin(), Fault{FaultKind::kDeadlock, std::move(text), std::move(chain)});
}

}  // namespace

void check_deadlock(const RingProgram& program, const Match& match, std::vector<Fault>& faults) {
  Player player(program, match);
  player.play();
  std::map<OpId, size_t> walked;  // Op -> number of the walk that met it first.
  size_t walk = 0;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    for (int lane = 0; lane < program.lanes; ++lane, ++walk) {
      std::vector<OpId> chain;
      for (std::optional<OpId> id = player.head(rank, lane); id; id = player.waits_for(*id)) {
        const auto [known, is_new] = walked.emplace(*id, walk);
        if (is_new) {
          chain.push_back(*id);
          continue;
        }
        const auto repeated = std::find(chain.begin(), chain.end(), *id);
        if (known->second == walk && repeated != chain.end()) {
          report_cycle(program, chain, static_cast<size_t>(repeated - chain.begin()), faults);
        }
        break;
      }
    }
  }
}

}  // namespace ring::check
