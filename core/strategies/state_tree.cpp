#include "core/strategies/state_tree.h"

#include <algorithm>
#include <functional>

#include "core/error.h"

namespace ring {

StateTree::StateTree(std::vector<bool> is_seen) : seen_before_(is_seen.size() + 1, 0) {
  for (size_t chunk = 0; chunk < is_seen.size(); ++chunk) {
    seen_before_[chunk + 1] = seen_before_[chunk] + (is_seen[chunk] ? 1 : 0);
  }
}

int32_t StateTree::acquire() {
  if (free_.empty()) return states_++;
  // The smallest free number, so that the choice does not depend on history.
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int32_t state = free_.back();
  free_.pop_back();
  return state;
}

bool StateTree::is_empty(int level, int64_t index) const {
  const int64_t chunks = static_cast<int64_t>(seen_before_.size()) - 1;
  const int64_t begin = std::min(index << level, chunks);
  const int64_t end = std::min((index + 1) << level, chunks);
  return seen_before_[static_cast<size_t>(begin)] == seen_before_[static_cast<size_t>(end)];
}

std::vector<StateTree::Node> StateTree::held() const {
  std::vector<Node> nodes;
  for (const auto& [place, state] : done_) nodes.push_back({place.first, place.second, state});
  if (root_ == -1) return nodes;
  const int64_t chunks = static_cast<int64_t>(seen_before_.size()) - 1;
  int top = 0;
  while ((int64_t{1} << top) < chunks) ++top;
  return {{top, 0, root_}};
}

std::vector<StateTree::Merge> StateTree::add(Node node) {
  std::vector<Merge> merges;
  const int64_t chunks = static_cast<int64_t>(seen_before_.size()) - 1;
  int level = node.level;
  int64_t index = node.index;
  int32_t state = node.state;
  while ((int64_t{1} << level) < chunks) {
    const int64_t sibling = index ^ 1;
    if (!is_empty(level, sibling)) {
      const auto other = done_.find({level, sibling});
      if (other == done_.end()) {
        done_[{level, index}] = state;
        return merges;
      }
      const int32_t left = index < sibling ? state : other->second;
      const int32_t right = index < sibling ? other->second : state;
      done_.erase(other);
      merges.push_back({left, right});
      free_.push_back(right);
      std::push_heap(free_.begin(), free_.end(), std::greater<>());
      state = left;
    }
    ++level;
    index >>= 1;
  }
  RING_ASSERT(root_ == -1);
  root_ = state;
  return merges;
}

}  // namespace ring
