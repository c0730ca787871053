// Interference: how attention and transfers slow each other down while both are under way.
#pragma once

#include <vector>

#include "sim/fluid.h"
#include "sim/machine_model.h"

namespace ring {

/// Applies Machine::attend_contention, attend_slowdown_by_transfer and transfer_slowdown_by_attend
/// for as long as their condition holds. Attention and copies keep their share of the processor and
/// get less done with it; a flow over links is capped at its narrowest link over the factor.
class Interference {
 public:
  Interference(const Machine& machine, const MachineModel& model, int ranks, Fluid& fluid);

  bool is_on() const { return is_on_; }

  void attend_begins(int rank, int group);
  void attend_ends(int rank, int group);
  /// `cap` is that of a flow that nothing slows; 0 for copies, whose efficiency is set instead.
  void transfer_begins(int source, int destination, int group, double cap);
  void transfer_ends(int source, int destination, int group);

 private:
  struct Transfer {
    int source, destination, group;
    double cap;
    int count;
  };
  struct Rank {
    int processor = 0;           ///< Dense number of its processor.
    int host = 0;                ///< Dense number of its host.
    std::vector<int> attending;  ///< Groups.
    std::vector<Transfer> transfers;
    int transfer_count = 0;
  };
  struct Host {
    int processors = 0;
    int attending_processors = 0;
    std::vector<int> ranks;
  };

  void place_ranks(const MachineModel& model, int ranks);
  void update_attends(int rank);
  void update_host(int host);
  void update_transfers(int rank);
  void update(const Transfer& transfer);
  void add(int rank, const Transfer& transfer);
  void remove(int rank, int group);

  Fluid& fluid_;
  bool is_on_;
  double contention_, attend_factor_, transfer_factor_;
  std::vector<Rank> ranks_;
  std::vector<Host> hosts_;
  std::vector<int> attends_on_processor_;
};

}  // namespace ring
