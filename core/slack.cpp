#include "core/slack.h"

#include <algorithm>

#include "core/error.h"

namespace ring {
namespace {

/// Goes from the ends of the run to its start, an activity after all that waited for it. An
/// activity is an op or both sides of a rendezvous, told by the smaller node.
class SlackPass {
 public:
  explicit SlackPass(const RunGraph& graph)
      : graph_(graph),
        waiting_(static_cast<size_t>(graph.nodes()), 0),
        slack_(static_cast<size_t>(graph.nodes()), -1) {}

  std::vector<Picoseconds> run() {
    start();
    while (!ready_.empty()) {
      const int64_t activity = ready_.back();
      ready_.pop_back();
      --open_;
      finish(activity);
    }
    if (open_ > 0) throw_usage("the program has a cycle of ops");
    return std::move(slack_);
  }

 private:
  int64_t activity_of(int64_t node) const {
    return graph_.is_joint(node) ? std::min(node, graph_.partner(node)) : node;
  }

  template <typename Visit>
  void for_each_predecessor(int64_t activity, const Visit& visit) const {
    for (const int64_t side : graph_.sides_of(activity)) {
      if (side < 0) continue;
      for (const Predecessor& before : graph_.predecessors(side)) visit(before.node);
    }
  }

  void start() {
    Picoseconds makespan_ps = 0;
    for (const Slice& slice : graph_.timeline().slices) {
      makespan_ps = std::max(makespan_ps, slice.end_ps);
    }
    for (int64_t n = 0; n < graph_.nodes(); ++n) {
      if (!graph_.ran(n)) continue;
      slack_[static_cast<size_t>(n)] = makespan_ps - graph_.slice(n).end_ps;
      if (activity_of(n) != n) continue;
      ++open_;
      for_each_predecessor(
          n, [&](int64_t before) { ++waiting_[static_cast<size_t>(activity_of(before))]; });
    }
    for (int64_t n = 0; n < graph_.nodes(); ++n) {
      if (graph_.ran(n) && activity_of(n) == n && waiting_[static_cast<size_t>(n)] == 0) {
        ready_.push_back(n);
      }
    }
  }

  void finish(int64_t activity) {
    Picoseconds& own_ps = slack_[static_cast<size_t>(activity)];
    const int64_t other = graph_.sides_of(activity)[1];
    if (other >= 0) {
      own_ps = std::min(own_ps, slack_[static_cast<size_t>(other)]);
      slack_[static_cast<size_t>(other)] = own_ps;
    }
    const Picoseconds release_ps = graph_.release_of(activity).end_ps;
    for_each_predecessor(activity, [&](int64_t before) {
      Picoseconds& of_before = slack_[static_cast<size_t>(before)];
      of_before = std::min(of_before, own_ps + release_ps - graph_.slice(before).end_ps);
      const int64_t before_activity = activity_of(before);
      if (--waiting_[static_cast<size_t>(before_activity)] == 0) ready_.push_back(before_activity);
    });
  }

  const RunGraph& graph_;
  std::vector<int64_t> waiting_;  ///< Successors that are not finished, by activity.
  std::vector<Picoseconds> slack_;
  std::vector<int64_t> ready_;
  int64_t open_ = 0;
};

}  // namespace

std::vector<Picoseconds> slacks(const RunGraph& graph) { return SlackPass(graph).run(); }

}  // namespace ring
