#include "sim/interference.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace ring {

Interference::Interference(const Machine& machine, const MachineModel& model, int ranks,
                           Fluid& fluid)
    : fluid_(fluid),
      contention_(machine.attend_contention),
      attend_factor_(machine.attend_slowdown_by_transfer),
      transfer_factor_(machine.transfer_slowdown_by_attend) {
  if (!(contention_ > 0 && attend_factor_ > 0 && transfer_factor_ > 0)) {
    throw_usage("the contention and slowdown factors of a machine must be positive");
  }
  is_on_ = contention_ != 1 || attend_factor_ != 1 || transfer_factor_ != 1;
  if (is_on_) place_ranks(model, ranks);
}

void Interference::place_ranks(const MachineModel& model, int ranks) {
  std::map<int, int> processors, hosts;
  for (int rank = 0; rank < ranks; ++rank) {
    Rank& placed = ranks_.emplace_back();
    const auto next_processor = static_cast<int>(processors.size());
    placed.processor = processors.try_emplace(model.processor(rank), next_processor).first->second;
    const auto next_host = static_cast<int>(hosts.size());
    const auto [host, is_new] = hosts.try_emplace(model.host_of(rank), next_host);
    placed.host = host->second;
    if (is_new) hosts_.emplace_back().processors = model.processors_of_host(host->first);
    hosts_[static_cast<size_t>(placed.host)].ranks.push_back(rank);
  }
  attends_on_processor_.assign(processors.size(), 0);
}

void Interference::attend_begins(int rank, int group) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  own.attending.push_back(group);
  update_attends(rank);
  if (own.attending.size() == 1) update_transfers(rank);
  if (attends_on_processor_[static_cast<size_t>(own.processor)]++ > 0) return;
  ++hosts_[static_cast<size_t>(own.host)].attending_processors;
  update_host(own.host);
}

void Interference::attend_ends(int rank, int group) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  own.attending.erase(std::find(own.attending.begin(), own.attending.end(), group));
  if (own.attending.empty()) update_transfers(rank);
  if (--attends_on_processor_[static_cast<size_t>(own.processor)] > 0) return;
  --hosts_[static_cast<size_t>(own.host)].attending_processors;
  update_host(own.host);
}

void Interference::transfer_begins(int source, int destination, int group, double cap) {
  const Transfer transfer{source, destination, group, cap, 1};
  add(source, transfer);
  if (destination != source) add(destination, transfer);
  update(transfer);
}

void Interference::transfer_ends(int source, int destination, int group) {
  remove(source, group);
  if (destination != source) remove(destination, group);
}

void Interference::add(int rank, const Transfer& transfer) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  const auto same = std::find_if(own.transfers.begin(), own.transfers.end(),
                                 [&](const Transfer& t) { return t.group == transfer.group; });
  if (same != own.transfers.end()) {
    ++same->count;
  } else {
    own.transfers.push_back(transfer);
  }
  if (own.transfer_count++ == 0) update_attends(rank);
}

void Interference::remove(int rank, int group) {
  Rank& own = ranks_[static_cast<size_t>(rank)];
  const auto same = std::find_if(own.transfers.begin(), own.transfers.end(),
                                 [&](const Transfer& t) { return t.group == group; });
  if (--same->count == 0) own.transfers.erase(same);
  if (--own.transfer_count == 0) update_attends(rank);
}

void Interference::update_attends(int rank) {
  const Rank& own = ranks_[static_cast<size_t>(rank)];
  const Host& host = hosts_[static_cast<size_t>(own.host)];
  double factor = own.transfer_count > 0 ? attend_factor_ : 1;
  if (host.processors > 1 && host.attending_processors > 1) {
    const double share = static_cast<double>(host.attending_processors - 1) / (host.processors - 1);
    factor *= 1 + (contention_ - 1) * share;
  }
  for (const int group : own.attending) fluid_.set_efficiency(group, 1 / factor);
}

void Interference::update_host(int host) {
  if (contention_ == 1) return;
  for (const int rank : hosts_[static_cast<size_t>(host)].ranks) update_attends(rank);
}

void Interference::update_transfers(int rank) {
  if (transfer_factor_ == 1) return;
  for (const Transfer& transfer : ranks_[static_cast<size_t>(rank)].transfers) update(transfer);
}

void Interference::update(const Transfer& transfer) {
  const bool is_slowed = !ranks_[static_cast<size_t>(transfer.source)].attending.empty() ||
                         !ranks_[static_cast<size_t>(transfer.destination)].attending.empty();
  const double factor = is_slowed ? transfer_factor_ : 1;
  if (transfer.cap > 0) {
    fluid_.set_cap(transfer.group, transfer.cap / factor);
  } else {
    fluid_.set_efficiency(transfer.group, 1 / factor);
  }
}

}  // namespace ring
