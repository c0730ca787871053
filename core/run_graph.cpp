#include "core/run_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/error.h"

namespace ring {

std::string_view name(ReleaseKind kind) {
  switch (kind) {
    case ReleaseKind::kStartOfRun:
      return "start of run";
    case ReleaseKind::kLaneOrder:
      return "lane order";
    case ReleaseKind::kDependency:
      return "dependency";
    case ReleaseKind::kBufferCredit:
      return "buffer credit";
    case ReleaseKind::kPeer:
      return "peer";
  }
  return "?";
}

RunGraph::RunGraph(const RingProgram& program, const Timeline& timeline)
    : program_(&program), timeline_(&timeline) {
  int64_t total = 0;
  for (const RankProgram& rank : program.rank_programs) {
    first_node_.push_back(total);
    total += static_cast<int64_t>(rank.ops.size());
  }
  first_node_.push_back(total);
  slice_.assign(static_cast<size_t>(total), -1);
  partner_.assign(static_cast<size_t>(total), -1);
  index_slices();
  match_transfers();
  link_predecessors();
}

OpId RunGraph::id(int64_t node) const {
  const auto after = std::upper_bound(first_node_.begin(), first_node_.end(), node);
  const auto rank = after - first_node_.begin() - 1;
  return {static_cast<int32_t>(rank), node - first_node_[static_cast<size_t>(rank)]};
}

const Slice& RunGraph::slice(int64_t node) const {
  RING_ASSERT(ran(node));
  return timeline_->slices[static_cast<size_t>(slice_[static_cast<size_t>(node)])];
}

bool RunGraph::is_joint(int64_t node) const {
  const int64_t other = partner(node);
  if (other < 0 || !ran(node) || !ran(other)) return false;
  const Op& mine = op(node);
  return (mine.kind == OpKind::kSend ? mine : op(other)).protocol == Protocol::kRendezvous;
}

std::span<const Predecessor> RunGraph::predecessors(int64_t node) const {
  const auto at = static_cast<size_t>(node);
  const auto begin = static_cast<size_t>(predecessor_begin_[at]);
  const auto end = static_cast<size_t>(predecessor_begin_[at + 1]);
  return {predecessors_.data() + begin, end - begin};
}

Release RunGraph::release_of(int64_t node) const {
  Release last;
  for (const int64_t side : sides_of(node)) {
    if (side < 0) continue;
    for (const Predecessor& before : predecessors(side)) {
      const Picoseconds end_ps = slice(before.node).end_ps;
      const bool is_credit = before.kind == ReleaseKind::kBufferCredit;
      if (!is_credit) last.without_credit_ps = std::max(last.without_credit_ps, end_ps);
      const bool is_later = last.node < 0 || end_ps > last.end_ps;
      const bool shares_credit =
          !is_credit && last.kind == ReleaseKind::kBufferCredit && end_ps == last.end_ps;
      if (!is_later && !shares_credit) continue;
      last.node = before.node;
      last.end_ps = end_ps;
      last.kind = side == node || is_credit ? before.kind : ReleaseKind::kPeer;
    }
  }
  return last;
}

void RunGraph::index_slices() {
  for (size_t i = 0; i < timeline_->slices.size(); ++i) {
    const OpId id = timeline_->slices[i].op;
    const bool is_known =
        id.rank >= 0 && id.rank < program_->ranks() && id.index >= 0 &&
        id.index < std::ssize(program_->rank_programs[static_cast<size_t>(id.rank)].ops);
    if (!is_known) {
      throw_usage(fmt::format("the timeline names op r{}:{}, which the program does not have",
                              id.rank, id.index),
                  "program and timeline must be of the same run");
    }
    int64_t& slot = slice_[static_cast<size_t>(node(id))];
    if (slot >= 0) {
      throw_usage(fmt::format("the timeline has op r{}:{} twice", id.rank, id.index),
                  "a timeline holds one slice per op");
    }
    slot = static_cast<int64_t>(i);
  }
}

void RunGraph::match_transfers() {
  struct Side {
    int32_t from, to;
    int64_t message, node;
    bool operator<(const Side& other) const {
      return std::tie(from, to, message, node) <
             std::tie(other.from, other.to, other.message, other.node);
    }
  };
  std::vector<Side> sends, receives;
  for (int32_t rank = 0; rank < program_->ranks(); ++rank) {
    const auto& ops = program_->rank_programs[static_cast<size_t>(rank)].ops;
    for (int64_t i = 0; i < std::ssize(ops); ++i) {
      const Op& op = ops[static_cast<size_t>(i)];
      if (op.kind == OpKind::kSend) sends.push_back({rank, op.peer, op.message, node({rank, i})});
      if (op.kind == OpKind::kReceive) {
        receives.push_back({op.peer, rank, op.message, node({rank, i})});
      }
    }
  }
  std::sort(sends.begin(), sends.end());
  std::sort(receives.begin(), receives.end());
  size_t r = 0;
  for (const Side& send : sends) {
    const auto key = std::tie(send.from, send.to, send.message);
    while (r < receives.size() &&
           std::tie(receives[r].from, receives[r].to, receives[r].message) < key) {
      ++r;
    }
    if (r == receives.size()) break;
    if (std::tie(receives[r].from, receives[r].to, receives[r].message) != key) continue;
    partner_[static_cast<size_t>(send.node)] = receives[r].node;
    partner_[static_cast<size_t>(receives[r].node)] = send.node;
    ++r;
  }
}

int64_t RunGraph::latest_that_ran(int32_t rank, int32_t lane, int64_t position) const {
  if (lane < 0 || lane >= program_->lanes) return -1;
  const auto& nodes = lane_nodes_[static_cast<size_t>(rank) * static_cast<size_t>(program_->lanes) +
                                  static_cast<size_t>(lane)];
  for (int64_t i = std::min(position, std::ssize(nodes) - 1); i >= 0; --i) {
    if (ran(nodes[static_cast<size_t>(i)])) return nodes[static_cast<size_t>(i)];
  }
  return -1;
}

bool RunGraph::is_credit(const Op& op, int64_t predecessor) const {
  if (op.kind != OpKind::kReceive || op.buffer == kHomeBuffer) return false;
  const Op& before = this->op(predecessor);
  if (is_gradient(op.payload)) {
    return before.kind == OpKind::kAdd ? before.source_state == op.buffer
                                       : before.kind == OpKind::kSend && before.buffer == op.buffer;
  }
  return (computes_pairs(before.kind) || before.kind == OpKind::kSend) &&
         before.buffer == op.buffer;
}

void RunGraph::link_predecessors() {
  const auto lanes = static_cast<size_t>(program_->lanes);
  lane_nodes_.resize(lanes * static_cast<size_t>(program_->ranks()));
  for (int64_t n = 0; n < nodes(); ++n) {
    const Op& op = this->op(n);
    if (op.lane < 0 || op.lane >= program_->lanes) {
      throw_usage(fmt::format("op r{}:{} is on lane {}, but the program has {} lanes", id(n).rank,
                              id(n).index, op.lane, program_->lanes));
    }
    lane_nodes_[static_cast<size_t>(id(n).rank) * lanes + static_cast<size_t>(op.lane)].push_back(
        n);
  }
  predecessor_begin_.reserve(slice_.size() + 1);
  predecessor_begin_.push_back(0);
  for (int64_t n = 0; n < nodes(); ++n) {
    if (ran(n)) {
      const OpId at = id(n);
      const Op& op = this->op(n);
      const int64_t before = latest_that_ran(at.rank, op.lane, op.lane_position - 1);
      if (before >= 0) predecessors_.push_back({before, ReleaseKind::kLaneOrder});
      for (const LanePoint& dep :
           program_->rank_programs[static_cast<size_t>(at.rank)].deps_of(op)) {
        const int64_t needed = latest_that_ran(at.rank, dep.lane, dep.position);
        if (needed < 0 || needed == n) continue;
        predecessors_.push_back({needed, is_credit(op, needed) ? ReleaseKind::kBufferCredit
                                                               : ReleaseKind::kDependency});
      }
      const int64_t other = partner(n);
      if (op.kind == OpKind::kReceive && other >= 0 && ran(other) && !is_joint(n)) {
        predecessors_.push_back({other, ReleaseKind::kPeer});
      }
    }
    predecessor_begin_.push_back(std::ssize(predecessors_));
  }
}

}  // namespace ring
