#include "sim/analytic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/cost_model.h"
#include "core/error.h"
#include "core/memory_model.h"

namespace ring {

Picoseconds pass_kv_ps(const UniformRing& ring) { return ring.compute_ps + stepped_ring_ps(ring); }

Picoseconds stepped_ring_ps(const UniformRing& ring) {
  return checked_multiply(ring.ranks - 1, std::max(ring.compute_ps, ring.transfer_ps),
                          "time of a ring");
}

Picoseconds all_gather_kv_ps(const UniformRing& ring) {
  return checked_add(checked_multiply(ring.ranks - 1, ring.transfer_ps, "time of an all-gather"),
                     checked_multiply(ring.ranks, ring.compute_ps, "time of attention"),
                     "time of all-gather and attention");
}

namespace {

CausalLoad causal_load(int ranks, int64_t shard_tokens, int64_t longest_pairs) {
  const int64_t tokens = checked_multiply(ranks, shard_tokens, "sequence length");
  CausalLoad load;
  load.longest_pairs = longest_pairs;
  // n (n + 1) / 2, halved before it is multiplied.
  load.total_pairs = tokens % 2 == 0 ? checked_multiply(tokens / 2, tokens + 1, "visible pairs")
                                     : checked_multiply(tokens, (tokens + 1) / 2, "visible pairs");
  if (longest_pairs > 0) {
    load.efficiency = static_cast<double>(load.total_pairs) / static_cast<double>(ranks) /
                      static_cast<double>(longest_pairs);
  }
  return load;
}

}  // namespace

CausalLoad contiguous_causal(int ranks, int64_t shard_tokens) {
  const int64_t whole = checked_multiply(shard_tokens, shard_tokens, "visible pairs");
  const int64_t diagonal = (whole + shard_tokens) / 2;
  return causal_load(ranks, shard_tokens,
                     checked_multiply(ranks - 1, whole, "visible pairs") + diagonal);
}

CausalLoad zigzag_causal(int ranks, int64_t shard_tokens) {
  if (shard_tokens % 2 != 0) {
    throw_usage("zigzag shards have two equal chunks; the shard length is odd");
  }
  // Chunks of c: r and 2 P - 1 - r are preceded by 2 P - 1 whole chunks together, and each sees
  // half of itself.
  const int64_t chunk = shard_tokens / 2;
  const int64_t whole = checked_multiply(chunk, chunk, "visible pairs");
  return causal_load(
      ranks, shard_tokens,
      checked_multiply(2 * int64_t{ranks} - 1, whole, "visible pairs") + whole + chunk);
}

std::optional<double> hiding_bandwidth(Bytes bytes, Picoseconds latency_ps,
                                       Picoseconds compute_ps) {
  if (bytes == 0) return latency_ps <= compute_ps ? std::optional(0.0) : std::nullopt;
  if (latency_ps >= compute_ps) return std::nullopt;
  return static_cast<double>(bytes) / seconds_from_picoseconds(compute_ps - latency_ps);
}

Tokens hiding_tokens(double pair_s, double latency_s, Bytes token_bytes, double bytes_per_s) {
  RING_ASSERT(pair_s > 0 && bytes_per_s > 0);
  const double token_s = static_cast<double>(token_bytes) / bytes_per_s;
  const double root = std::sqrt(token_s * token_s + 4 * pair_s * latency_s);
  const double tokens = std::ceil((token_s + root) / (2 * pair_s));
  if (!(tokens < 9e18)) throw_usage("no 64-bit shard length hides this hop");
  return static_cast<Tokens>(tokens);
}

Picoseconds LowerBounds::longest_ps() const { return std::max({compute_ps, link_ps, memory_ps}); }

namespace {

/// What a link direction, a half-duplex link or a backplane has to carry.
struct Load {
  double bytes = 0;
  double bytes_per_s = 0;
  Picoseconds latency_ps = std::numeric_limits<Picoseconds>::max();  ///< The least of its flows.
  int link = -1;
};

class BoundsBuilder {
 public:
  BoundsBuilder(const RingProgram& program, const Machine& machine)
      : program_(program), machine_(machine) {}

  LowerBounds build() {
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      add_work(rank);
      if (program_.has_attention) add_memory(rank);
    }
    for (const auto& [processor, time] : processor_s_) {
      raise_compute(picoseconds_from_seconds(time.first), time.second);
    }
    for (const auto& [resource, load] : loads_) {
      const Picoseconds time_ps =
          load.latency_ps + picoseconds_from_seconds(load.bytes / load.bytes_per_s);
      if (time_ps <= bounds_.link_ps) continue;
      bounds_.link_ps = time_ps;
      bounds_.link = load.link;
    }
    for (const auto& [host, bytes] : host_bytes_) {
      bounds_.memory_ps = std::max(bounds_.memory_ps,
                                   picoseconds_from_seconds(bytes / machine_.memory_bytes_per_s));
    }
    return bounds_;
  }

 private:
  void raise_compute(Picoseconds time_ps, int rank) {
    if (time_ps <= bounds_.compute_ps) return;
    bounds_.compute_ps = time_ps;
    bounds_.compute_rank = rank;
  }

  void add_work(int rank) {
    const Problem* problem = program_.has_attention ? &program_.problem : nullptr;
    const int processor = processor_of(machine_, rank);
    std::map<int32_t, double> lane_s;
    double core_s = 0;
    for (const Op& op : program_.rank_programs[static_cast<size_t>(rank)].ops) {
      double time_s = op_seconds(machine_, problem, op);
      const bool is_copied =
          op.kind == OpKind::kReceive && machine_.transfer == TransferKind::kReceiverCopy;
      if (is_copied) time_s = byte_seconds(machine_.copy, op.bytes, "copy rate");
      if (is_copied || op.kind == OpKind::kCopy) add_host_bytes(processor, op.bytes);
      // Plain computation keeps its time however many share the processor.
      if (op.kind != OpKind::kCompute) core_s += time_s;
      lane_s[op.lane] += time_s;
      if (op.kind == OpKind::kSend) add_flow(rank, op);
    }
    for (const auto& [lane, time_s] : lane_s) {
      raise_compute(picoseconds_from_seconds(time_s), rank);
    }
    const auto at = processor_s_.try_emplace(processor, 0.0, rank).first;
    at->second.first += core_s;
  }

  void add_host_bytes(int processor, Bytes bytes) {
    if (machine_.memory_bytes_per_s <= 0) return;
    const int host = machine_.topology.nodes()[static_cast<size_t>(processor)].host;
    host_bytes_[host] += static_cast<double>(bytes);
  }

  const Route& route_between(int from, int to) {
    const auto [at, is_new] = routes_.try_emplace({from, to});
    if (is_new) at->second = machine_.topology.route(from, to);
    return at->second;
  }

  void add_flow(int rank, const Op& op) {
    if (machine_.transfer != TransferKind::kLinks) return;
    const Topology& topology = machine_.topology;
    const Route& route =
        route_between(processor_of(machine_, rank), processor_of(machine_, op.peer));
    for (const int number : route.links) {
      const Link& link = topology.links()[static_cast<size_t>(number)];
      const bool is_shared = link.duplex_group >= 0;
      add_load(is_shared ? 'd' : 'l', is_shared ? link.duplex_group : number, link.bytes_per_s,
               number, route, op.bytes);
      const double backplane = topology.nodes()[static_cast<size_t>(link.to)].backplane_bytes_per_s;
      if (backplane > 0) add_load('b', link.to, backplane, number, route, op.bytes);
    }
  }

  void add_load(char kind, int number, double bytes_per_s, int link, const Route& route,
                Bytes bytes) {
    Load& load = loads_[{kind, number}];
    load.bytes += static_cast<double>(bytes);
    load.bytes_per_s = bytes_per_s;
    load.latency_ps = std::min(load.latency_ps, route.latency_ps);
    if (load.link < 0) load.link = link;
  }

  void add_memory(int rank) {
    const RankStorage& storage = program_.rank_programs[static_cast<size_t>(rank)].storage;
    const Bytes bytes = ring::rank_bytes(program_.problem, storage);
    if (bytes <= bounds_.rank_bytes) return;
    bounds_.rank_bytes = bytes;
    bounds_.fullest_rank = rank;
    bounds_.fits = machine_.memory_capacity_bytes == 0 || bytes <= machine_.memory_capacity_bytes;
  }

  const RingProgram& program_;
  const Machine& machine_;
  LowerBounds bounds_;
  std::map<int, std::pair<double, int>> processor_s_;  ///< Node -> seconds, first rank.
  std::map<std::pair<char, int>, Load> loads_;
  std::map<int, double> host_bytes_;
  std::map<std::pair<int, int>, Route> routes_;
};

}  // namespace

LowerBounds lower_bounds(const RingProgram& program, const Machine& machine) {
  return BoundsBuilder(program, machine).build();
}

}  // namespace ring
