// RunGraph: the ops of a run, and for each of them the ops whose end it had to wait for.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/ring_program.h"
#include "core/timeline.h"

namespace ring {

/// Why an op could not start earlier.
enum class ReleaseKind : uint8_t {
  kStartOfRun,    ///< Nothing came before it.
  kLaneOrder,     ///< The op before it in its lane.
  kDependency,    ///< An op whose result it uses.
  kBufferCredit,  ///< A receive: the op that last read the buffer.
  kPeer,          ///< A transfer: the other side of it, or what the other side waited for.
};
std::string_view name(ReleaseKind kind);

/// An op that had to end first, by node number.
struct Predecessor {
  int64_t node = -1;
  ReleaseKind kind = ReleaseKind::kLaneOrder;
};

/// The last thing an op waited for.
struct Release {
  int64_t node = -1;  ///< -1: nothing came before it.
  ReleaseKind kind = ReleaseKind::kStartOfRun;
  Picoseconds end_ps = 0;
  Picoseconds without_credit_ps = 0;  ///< When all but buffer credits had been met.
};

/// Nodes are all ops of the program, rank after rank. Ops without a slice (a run that was stopped)
/// did not run; what they stood for is looked up further back in their lane, so that a part of a
/// run can be explained too. Program and timeline must outlive the graph.
class RunGraph {
 public:
  /// Throws Error(kUsage) when the timeline names an op that the program does not have, or names
  /// one twice.
  RunGraph(const RingProgram& program, const Timeline& timeline);

  int64_t nodes() const { return static_cast<int64_t>(slice_.size()); }
  int64_t node(OpId id) const { return first_node_[static_cast<size_t>(id.rank)] + id.index; }
  OpId id(int64_t node) const;
  const Op& op(int64_t node) const { return program_->op(id(node)); }
  const RingProgram& program() const { return *program_; }
  const Timeline& timeline() const { return *timeline_; }

  bool ran(int64_t node) const { return slice_[static_cast<size_t>(node)] >= 0; }
  const Slice& slice(int64_t node) const;
  /// The other side of a transfer, or -1.
  int64_t partner(int64_t node) const { return partner_[static_cast<size_t>(node)]; }
  /// Whether this is one side of a rendezvous of which both sides ran: they start and end together.
  bool is_joint(int64_t node) const;
  /// Ops that ran and had to end before this one could start; of an eager receive also its send.
  /// Of one side of a rendezvous only what that side waits for.
  std::span<const Predecessor> predecessors(int64_t node) const;
  /// What the op, or either side of its rendezvous, waited for last. Waits that credits share with
  /// something else are not put down to the credits.
  Release release_of(int64_t node) const;
  /// The node itself, and the other side of its rendezvous or -1.
  std::array<int64_t, 2> sides_of(int64_t node) const {
    return {node, is_joint(node) ? partner(node) : -1};
  }

 private:
  void index_slices();
  void match_transfers();
  void link_predecessors();
  int64_t latest_that_ran(int32_t rank, int32_t lane, int64_t position) const;
  bool is_credit(const Op& op, int64_t predecessor) const;

  const RingProgram* program_;
  const Timeline* timeline_;
  std::vector<int64_t> first_node_;
  std::vector<int64_t> slice_;  ///< By node; -1: did not run.
  std::vector<int64_t> partner_;
  std::vector<std::vector<int64_t>> lane_nodes_;  ///< By rank * lanes + lane.
  std::vector<int64_t> predecessor_begin_;
  std::vector<Predecessor> predecessors_;
};

}  // namespace ring
