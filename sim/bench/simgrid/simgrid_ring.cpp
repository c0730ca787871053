#include "sim/bench/simgrid/simgrid_ring.h"

#include <fmt/format.h>

#include <simgrid/s4u.hpp>

namespace ring {

namespace {

namespace sg4 = simgrid::s4u;

std::string mailbox(int source, int message) { return fmt::format("{}.{}", source, message); }

void run_rank(const RingScenario& scenario, int rank) {
  const int previous = (rank + scenario.ranks - 1) % scenario.ranks;
  const auto bytes = static_cast<uint64_t>(scenario.bytes / scenario.messages);
  int payload = 0;
  std::vector<int*> received(static_cast<size_t>(scenario.messages));
  for (int64_t step = 0; step < scenario.ranks - 1; ++step) {
    std::vector<sg4::CommPtr> transfers;
    for (int m = 0; m < scenario.messages; ++m) {
      transfers.push_back(sg4::Mailbox::by_name(mailbox(rank, m))->put_async(&payload, bytes));
      transfers.push_back(sg4::Mailbox::by_name(mailbox(previous, m))
                              ->get_async<int>(&received[static_cast<size_t>(m)]));
    }
    const int64_t extra_ns =
        scenario.is_irregular ? (int64_t{7919} * rank + 104729 * step) % 1'000'003 : 0;
    sg4::this_actor::sleep_for(seconds_from_picoseconds(scenario.compute_ps + extra_ns * 1000));
    for (const sg4::CommPtr& transfer : transfers) transfer->wait();
  }
}

}  // namespace

double simgrid_ring_seconds(const RingScenario& scenario) {
  int argc = 1;
  char name[] = "simgrid_ring";
  char* argv[] = {name, nullptr};
  sg4::Engine engine(&argc, argv);
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/TCP-gamma:1e30");
  sg4::NetZone* zone = sg4::create_full_zone("ring");
  std::vector<sg4::Host*> hosts;
  for (int rank = 0; rank < scenario.ranks; ++rank) {
    hosts.push_back(zone->create_host(fmt::format("h{}", rank), 1e9)->seal());
  }
  for (int rank = 0; rank < scenario.ranks; ++rank) {
    const sg4::Link* link =
        zone->create_link(fmt::format("l{}", rank), 25e9)->set_latency(5e-6)->seal();
    const auto next = static_cast<size_t>((rank + 1) % scenario.ranks);
    zone->add_route(hosts[static_cast<size_t>(rank)]->get_netpoint(), hosts[next]->get_netpoint(),
                    nullptr, nullptr, {sg4::LinkInRoute(link)}, false);
  }
  zone->seal();
  for (int rank = 0; rank < scenario.ranks; ++rank) {
    sg4::Actor::create(fmt::format("r{}", rank), hosts[static_cast<size_t>(rank)],
                       [&scenario, rank] { run_rank(scenario, rank); });
  }
  engine.run();
  return sg4::Engine::get_clock();
}

}  // namespace ring
