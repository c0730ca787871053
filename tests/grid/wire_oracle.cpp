#include "tests/grid/wire_oracle.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace ring::testing_support {
namespace {

using Positions = std::vector<int64_t>;  // Positions, in the order of the rank.
constexpr int64_t kFloat = 4;

/// Bytes of a token of all batch elements.
struct TokenBytes {
  int64_t keys, query, output, partial, query_side, key_gradients, query_gradients;

  TokenBytes(const Problem& p, int64_t heads, int64_t kv_heads) {
    const int64_t element = p.dtype == DType::kF32 ? 4 : 2;
    const int64_t d = p.head_dim, dv = p.head_dim_v;
    keys = p.batch * kv_heads * (d + dv) * element;
    query = p.batch * heads * d * element;
    output = p.batch * heads * dv * element;
    partial = p.batch * heads * (dv + 1) * kFloat;
    query_side = p.batch * heads * ((d + dv) * element + 2 * kFloat);
    key_gradients = p.batch * kv_heads * (d + dv) * kFloat;
    query_gradients = p.batch * heads * d * kFloat;
  }
};

Positions positions_of(const TokenRanges& ranges) {
  Positions all;
  for (const AffineRange& range : ranges) {
    for (int64_t i = 0; i < range.count; ++i) all.push_back(range.begin + i * range.stride);
  }
  return all;
}

/// Shards on a ring, a line or a star, of which parts travel.
class Shards {
 public:
  Shards(const RingProgram& program, std::vector<Positions> shards)
      : mask_(program.problem.mask), shards_(std::move(shards)) {
    size_t longest = 0;
    for (const Positions& shard : shards_) longest = std::max(longest, shard.size());
    const auto block = std::min(static_cast<size_t>(program.tuning.block_tokens), longest);
    const auto blocks = static_cast<size_t>(program.tuning.blocks_per_message);
    message_ = blocks == 0 ? longest : std::min(block * blocks, longest);
  }

  int count() const { return static_cast<int>(shards_.size()); }
  const Positions& shard(int number) const { return shards_[static_cast<size_t>(number)]; }

  bool sees(const Positions& queries, const Positions& keys) const {
    for (const int64_t query : queries) {
      const KeyInterval seen = mask_.visible(query);
      for (const int64_t key : keys) {
        if (key >= seen.begin && key < seen.end) return true;
      }
    }
    return false;
  }

  /// Calls `visit(owner, number of the message, its tokens)` for each message.
  template <class Visit>
  void for_messages(const Visit& visit) const {
    for (int owner = 0; owner < count(); ++owner) {
      const Positions& all = shard(owner);
      int64_t number = 0;
      for (size_t at = 0; at < all.size(); at += message_, ++number) {
        const size_t end = std::min(at + message_, all.size());
        visit(owner, number,
              Positions(all.begin() + static_cast<int64_t>(at),
                        all.begin() + static_cast<int64_t>(end)));
      }
    }
  }

 private:
  const Mask& mask_;
  std::vector<Positions> shards_;
  size_t message_ = 0;
};

/// The ranks in the order in which a message of an owner meets them; the owner itself is left out.
using Route = std::function<std::vector<int>(int owner, int64_t message)>;
/// Hops that a message makes until everybody has it who is marked, in the order of the route.
using Hops = std::function<int64_t(const std::vector<bool>& is_needed)>;

struct Walk {
  Route route;
  Hops hops;
  bool gathers_home = false;  ///< Gradients go straight home.
};

int64_t last_of(const std::vector<bool>& marks) {
  for (size_t i = marks.size(); i > 0; --i) {
    if (marks[i - 1]) return static_cast<int64_t>(i);
  }
  return 0;
}

int64_t first_of(const std::vector<bool>& marks) {
  return std::find(marks.begin(), marks.end(), true) - marks.begin() + 1;
}

int64_t count_of(const std::vector<bool>& marks) {
  return std::count(marks.begin(), marks.end(), true);
}

Walk ring_walk(int ranks, std::vector<int> strides) {
  return {[ranks, strides](int owner, int64_t message) {
            const int stride = strides[static_cast<size_t>(message) % strides.size()];
            std::vector<int> route;
            for (int hop = 1; hop < ranks; ++hop)
              route.push_back(((owner + hop * stride) % ranks + ranks) % ranks);
            return route;
          },
          last_of};
}

Walk star_walk(int ranks) {
  Walk walk = ring_walk(ranks, {1});
  walk.hops = count_of;
  walk.gathers_home = true;
  return walk;
}

/// Inner rings of `inner` ranks; a message enters the next group at the same place.
Walk double_walk(int ranks, int inner) {
  const auto route = [ranks, inner](int owner, int64_t) {
    std::vector<int> all;
    for (int outer = 0; outer < ranks / inner; ++outer) {
      for (int place = 0; place < inner; ++place) {
        const int group = (owner / inner + outer) % (ranks / inner);
        all.push_back(group * inner + (owner + place) % inner);
      }
    }
    all.erase(all.begin());
    return all;
  };
  const auto hops = [inner](const std::vector<bool>& marks) {
    int64_t sum = 0, last_group = 0;
    for (size_t i = 0; i < marks.size(); ++i) {
      if (marks[i]) last_group = static_cast<int64_t>(i + 1) / inner;
    }
    for (int64_t group = 0; group <= last_group; ++group) {
      int64_t last_place = 0;
      for (int64_t place = 1; place < inner; ++place) {
        if (marks[static_cast<size_t>(group * inner + place - 1)]) last_place = place;
      }
      sum += last_place;
    }
    return sum + last_group;
  };
  return {route, hops};
}

/// What travels, what follows it home, and whether that is the query side.
struct Cargo {
  int64_t there = 0, home = 0;
  bool is_query = false;
};

Bytes travel(const Shards& shards, const Walk& walk, const Cargo& cargo) {
  Bytes sum = 0;
  shards.for_messages([&](int owner, int64_t number, const Positions& tokens) {
    std::vector<bool> marks;
    for (const int rank : walk.route(owner, number)) {
      const Positions& staying = shards.shard(rank);
      marks.push_back(cargo.is_query ? shards.sees(tokens, staying) : shards.sees(staying, tokens));
    }
    const auto size = static_cast<int64_t>(tokens.size());
    sum += size * cargo.there * walk.hops(marks);
    const int64_t answers = count_of(marks) == 0 ? 0
                            : walk.gathers_home  ? count_of(marks)
                                                 : last_of(marks) - first_of(marks) + 1;
    sum += size * cargo.home * answers;
  });
  return sum;
}

/// K and V forward; backward they or the query side, whichever is less.
Bytes key_rings(const RingProgram& program, const Shards& shards, const Walk& walk,
                const TokenBytes& bytes, bool keys_stay = false) {
  const Pass pass = program.problem.pass;
  Bytes sum = has_forward(pass) && !keys_stay ? travel(shards, walk, {bytes.keys}) : 0;
  if (!has_backward(pass)) return sum;
  const Bytes keys = travel(shards, walk, {bytes.keys, bytes.key_gradients});
  const Bytes queries = travel(shards, walk, {bytes.query_side, bytes.query_gradients, true});
  const bool is_grouped = program.tuning.strategy.starts_with("all-gather-kv:");
  if (keys_stay) return sum + queries;
  return sum + (is_grouped ? keys : std::min(keys, queries));
}

Bytes query_rings(const RingProgram& program, const Shards& shards, const TokenBytes& bytes,
                  bool at_once) {
  Walk walk = ring_walk(shards.count(), {-1});
  const Bytes backward = [&] {
    Walk back = walk;
    back.gathers_home = at_once;
    return key_rings(program, shards, back, bytes, true);
  }();
  if (!has_forward(program.problem.pass)) return backward;
  walk.gathers_home = true;  // Every rank that sees anything answers.
  return backward + travel(shards, walk, {bytes.query, bytes.partial, true});
}

/// Rows between the first and the last that ask go down the tree to all who see any of their keys;
/// merged results come up.
Bytes tree(const RingProgram& program, const Shards& shards, const TokenBytes& bytes) {
  const Mask& mask = program.problem.mask;
  const int ranks = shards.count();
  Bytes sum = 0;
  for (int owner = 0; owner < ranks; ++owner) {
    const Positions& all = shards.shard(owner);
    const auto asks = [&](int64_t position) {
      const KeyInterval seen = mask.visible(position);
      return seen.begin < seen.end;
    };
    const auto first = std::find_if(all.begin(), all.end(), asks);
    const auto last = std::find_if(all.rbegin(), all.rend(), asks).base();
    if (first >= last) continue;
    const Positions rows(first, last);
    std::set<int> joined;
    for (int place = 1; place < ranks; ++place) {
      if (!shards.sees(rows, shards.shard((owner + place) % ranks))) continue;
      for (int at = place; at > 0;) {
        joined.insert(at);
        int bit = 1;
        while (2 * bit <= at) bit *= 2;
        at -= bit;
      }
    }
    sum += static_cast<int64_t>(rows.size() * joined.size()) * (bytes.query + bytes.partial);
  }
  return sum;
}

/// Query heads and KV heads of one member of a group.
struct Share {
  int64_t heads, kv_heads;
};

Share share_of(const Problem& problem, int members, int member) {
  const int64_t kv = problem.kv_heads, group = problem.heads / kv;
  if (members > kv && problem.heads % members == 0) return {problem.heads / members, 1};  // Copies.
  const int64_t own = kv / members + (member < kv % members ? 1 : 0);
  return {own * group, own};
}

/// Tokens to heads and back inside groups, and rings of the gathered tokens over groups.
Bytes mesh(const RingProgram& program, const Shards& shards, int members, bool inputs_are_split) {
  const Pass pass = program.problem.pass;
  const int groups = shards.count() / members;
  Bytes sum = 0;
  std::vector<Positions> gathered(static_cast<size_t>(groups));
  for (int rank = 0; rank < shards.count(); ++rank) {
    Positions& group = gathered[static_cast<size_t>(rank / members)];
    const Positions& own = shards.shard(rank);
    group.insert(group.end(), own.begin(), own.end());
  }
  for (Positions& group : gathered) std::sort(group.begin(), group.end());
  const Shards ring(program, gathered);
  for (int member = 0; member < members; ++member) {
    const Share share = share_of(program.problem, members, member);
    const TokenBytes bytes(program.problem, share.heads, share.kv_heads);
    int64_t each = 0;
    if (has_forward(pass)) each += bytes.output + (inputs_are_split ? 0 : bytes.query + bytes.keys);
    if (has_backward(pass)) {
      each += bytes.output;  // dO.
      each += inputs_are_split ? 0 : bytes.query_gradients + bytes.key_gradients;
    }
    for (int rank = 0; rank < shards.count(); ++rank) {
      if (rank % members != member) sum += static_cast<int64_t>(shards.shard(rank).size()) * each;
    }
    sum += key_rings(program, ring, ring_walk(groups, {1}), bytes);
  }
  return sum;
}

std::vector<int> coprime_strides(int ranks) {
  std::vector<int> strides{1};
  for (int stride = 2; stride < ranks; ++stride) {
    bool has_factor = false;
    for (int factor = 2; factor <= stride; ++factor)
      has_factor = has_factor || (stride % factor == 0 && ranks % factor == 0);
    if (!has_factor) strides.push_back(stride);
  }
  return strides;
}

}  // namespace

Bytes wire_bytes(const RingProgram& program) {
  const Problem& problem = program.problem;
  std::vector<Positions> all;
  for (int rank = 0; rank < program.ranks(); ++rank)
    all.push_back(positions_of(program.partition.shard(rank)));
  const Shards shards(program, std::move(all));
  const int ranks = shards.count();
  const TokenBytes bytes(problem, problem.heads, problem.kv_heads);
  const std::string& text = program.tuning.strategy;
  const std::string name = text.substr(0, text.find(':'));
  const int number = name == text ? 0 : std::atoi(text.c_str() + name.size() + 1);
  if (name == "pass-kv") return key_rings(program, shards, ring_walk(ranks, {1}), bytes);
  if (name == "all-gather-kv") return key_rings(program, shards, star_walk(ranks), bytes);
  if (name == "double-ring") return key_rings(program, shards, double_walk(ranks, number), bytes);
  if (name == "multi-ring") {
    std::vector<int> strides = coprime_strides(ranks);
    if (number > 0) strides.resize(static_cast<size_t>(number));
    return key_rings(program, shards, ring_walk(ranks, strides), bytes);
  }
  if (name == "pass-q") return query_rings(program, shards, bytes, false);
  if (name == "bidirectional-ring") return query_rings(program, shards, bytes, true);
  if (name == "ulysses") return mesh(program, shards, ranks, false);
  if (name == "ulysses-ring") return mesh(program, shards, number, false);
  if (name == "tensor-parallel") return mesh(program, shards, ranks, true);
  if (name == "tree-decode") return tree(program, shards, bytes);
  return 0;  // One device, or nothing moves.
}

}  // namespace ring::testing_support
