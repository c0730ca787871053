// 500 random networks simulated here and by SimGrid (CM02, no cross-traffic).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <simgrid/s4u.hpp>

#include "sim/simulator.h"
#include "tests/sim/random_network.h"

namespace ring {
namespace {

namespace sg4 = simgrid::s4u;

constexpr uint64_t kNetworks = 500;

/// All networks are disjoint parts of one platform. A full zone each keeps the route tables small.
void add_network(sg4::NetZone* root, uint64_t seed, const RandomNetwork& network,
                 std::vector<double>& ends_s) {
  sg4::NetZone* zone = sg4::create_full_zone(fmt::format("z{}", seed))->set_parent(root);
  std::map<int, sg4::Link*> duplex;
  std::vector<sg4::Link*> links;
  for (const Link& link : network.topology.links()) {
    sg4::Link* known = link.duplex_group >= 0 ? duplex[link.duplex_group] : nullptr;
    if (known == nullptr) {
      known = zone->create_link(fmt::format("z{}l{}", seed, links.size()), link.bytes_per_s)
                  ->set_latency(seconds_from_picoseconds(link.latency_ps))
                  ->seal();
    }
    if (link.duplex_group >= 0) duplex[link.duplex_group] = known;
    links.push_back(known);
  }
  for (size_t i = 0; i < network.flows.size(); ++i) {
    const RandomFlow& flow = network.flows[i];
    const std::string name = fmt::format("z{}f{}", seed, i);
    sg4::Host* source = zone->create_host(name + "a", 1e9)->seal();
    sg4::Host* destination = zone->create_host(name + "b", 1e9)->seal();
    std::vector<sg4::LinkInRoute> path;
    for (const int link : network.topology.route(flow.source, flow.destination).links) {
      path.emplace_back(links[static_cast<size_t>(link)]);
    }
    zone->add_route(source->get_netpoint(), destination->get_netpoint(), nullptr, nullptr, path,
                    false);
    double& end_s = ends_s[i];
    sg4::Actor::create(name + "s", source, [flow, name] {
      sg4::this_actor::sleep_for(seconds_from_picoseconds(flow.start_ps));
      static int payload = 0;
      sg4::Mailbox::by_name(name)->put(&payload, static_cast<uint64_t>(flow.bytes));
    });
    sg4::Actor::create(name + "r", destination, [name, &end_s] {
      sg4::Mailbox::by_name(name)->get<int>();
      end_s = sg4::Engine::get_clock();
    });
  }
  zone->seal();
}

TEST(SimGrid, AgreesOnRandomNetworksWithEqualLatencies) {
  int argc = 1;
  char name[] = "simgrid_test";
  char* argv[] = {name, nullptr};
  sg4::Engine engine(&argc, argv);
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/crosstraffic:0");
  // No TCP window: the rate is that of the links.
  sg4::Engine::set_config("network/TCP-gamma:1e30");
  sg4::NetZone* root = sg4::create_full_zone("root");
  std::vector<RandomNetwork> networks;
  std::vector<std::vector<double>> ends_s(kNetworks);
  for (uint64_t seed = 0; seed < kNetworks; ++seed) {
    networks.push_back(draw_network(seed));
    ends_s[seed].assign(networks[seed].flows.size(), -1);
    add_network(root, seed, networks[seed], ends_s[seed]);
  }
  root->seal();
  engine.run();

  for (uint64_t seed = 0; seed < kNetworks; ++seed) {
    const SimulationResult result =
        simulate(program_of(networks[seed]), machine_of(networks[seed]));
    for (const Slice& slice : result.timeline.slices) {
      if (slice.kind != OpKind::kReceive) continue;
      const double ours_s = seconds_from_picoseconds(slice.end_ps);
      EXPECT_NEAR(ours_s / ends_s[seed][static_cast<size_t>(slice.op.rank / 2)], 1, 1e-6)
          << "network " << seed << ", flow " << slice.op.rank / 2;
    }
  }
}

}  // namespace
}  // namespace ring
