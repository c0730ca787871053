// The fixed binary tree in which deterministic programs merge the states of key chunks.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace ring {

/// Chunks are numbered in global order. A node (level, index) covers the chunks
/// [index << level, (index + 1) << level). Which states are merged with which depends only on the
/// chunk numbers, never on arrival, so the result does not depend on ring size or order. Chunks
/// that a rank does not see are empty and merge as the identity, which is left out.
class StateTree {
 public:
  /// `is_seen[c]` says whether the rank sees any key of chunk c.
  explicit StateTree(std::vector<bool> is_seen);

  struct Merge {
    int32_t state, source_state;
  };
  /// A free state for the next chunk.
  int32_t acquire();
  /// Chunk `chunk` is done in `state`; returns the merges that can be done now, in order.
  std::vector<Merge> add(int64_t chunk, int32_t state) { return add({0, chunk, state}); }
  /// A node and the state that it lies in.
  struct Node {
    int level = 0;
    int64_t index = 0;
    int32_t state = 0;
  };
  std::vector<Merge> add(Node node);
  /// What is there so far: nodes that wait for their sibling, in order, or the root.
  std::vector<Node> held() const;
  /// The state of the whole, after all seen chunks were added; -1 when there was none.
  int32_t root() const { return root_; }
  /// Number of states ever held at once.
  int32_t states() const { return states_; }

 private:
  bool is_empty(int level, int64_t index) const;

  std::vector<int64_t> seen_before_;  // seen_before_[c] = seen chunks below c.
  std::map<std::pair<int, int64_t>, int32_t> done_;
  std::vector<int32_t> free_;
  int32_t states_ = 0;
  int32_t root_ = -1;
};

}  // namespace ring
