// MaxMinSystem: max-min fair rates of groups of equal flows over shared resources.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace ring {

/// A group stands for `flows` equal flows that all use the same resources. Rates are the only ones
/// for which no flow can be given more without taking from a flow that has no more: all rates grow
/// together until a resource is full or a cap is met, those flows stop, the others grow on
/// (Bertsekas and Gallager, Data Networks, 6.5.2). Only components touched since the last call of
/// `solve` are solved again.
class MaxMinSystem {
 public:
  static constexpr double kNoCap = std::numeric_limits<double>::infinity();
  /// Rate of a flow that nothing limits.
  static constexpr double kUnlimited = 1e30;

  /// `capacity` is positive.
  int add_resource(double capacity);
  /// The resources must be different from each other. Starts without flows.
  int add_group(std::span<const int> resources, double cap);

  void set_capacity(int resource, double capacity);
  void set_cap(int group, double cap);  ///< Of each flow.
  void set_flows(int group, int flows);

  /// Solves what was touched and appends the groups with flows whose rate may have changed, each
  /// once, to `changed`.
  void solve(std::vector<int>& changed);

  /// Of each flow of the group, as of the last `solve`.
  double rate(int group) const { return groups_[static_cast<size_t>(group)].rate; }
  double capacity(int resource) const { return resources_[static_cast<size_t>(resource)].capacity; }
  /// How many groups were solved since construction; for benchmarks of the incremental solution.
  int64_t solved_groups() const { return solved_groups_; }

 private:
  struct Resource {
    double capacity = 0;
    std::vector<int> uses;  ///< Of the groups that have flows.
    double left = 0;        ///< During a solution: not yet given away.
    double share = 0;       ///< During a solution: left / flows.
    int64_t flows = 0;      ///< During a solution: of groups without a rate.
    uint32_t visit = 0;
  };
  /// A group's use of one resource.
  struct Use {
    int group = 0;
    int resource = 0;
    int place = -1;  ///< In Resource::uses.
  };
  struct Group {
    int first_use = 0;
    int use_count = 0;
    int flows = 0;
    double cap = kNoCap;
    double rate = 0;
    bool is_touched = false;
    bool has_rate = false;  ///< During a solution.
    uint32_t visit = 0;
  };
  struct Share {
    double share;
    int resource;
    bool operator>(const Share& other) const {
      return share != other.share ? share > other.share : resource > other.resource;
    }
  };

  void touch(int group);
  std::span<Use> uses_of(const Group& group);
  void enter(Group& group);
  void leave(Group& group);
  bool solve_alone(Group& group);
  void collect(int seed);
  void visit_resource(int resource);
  void fill();
  bool next_bottleneck(double& share, int& resource);
  void freeze(int group, double rate);

  std::vector<Resource> resources_;
  std::vector<Group> groups_;
  std::vector<Use> uses_;
  std::vector<int> touched_;
  uint32_t visit_ = 0;
  int64_t solved_groups_ = 0;

  std::vector<int> component_groups_, component_resources_;  ///< Of the solution under way.
  std::vector<Share> shares_;                                ///< Heap, least share on top.
  std::vector<int> by_cap_;
};

}  // namespace ring
