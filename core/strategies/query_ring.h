// Programs in which queries walk round the ring and partial results come home; keys stay.
#pragma once

#include <memory>

#include "core/ring_program.h"

namespace ring {

/// When the partial results go back to the rank that asked.
enum class ReturnOfPartials {
  kAtTheEnd,  ///< In one all-to-all after the ring; a rank keeps those of all others until then.
  kAtOnce,    ///< Each as soon as it is there, against the direction of the queries.
};

/// Queries go to the rank before them, since that is where causal masks and windows let them see
/// keys. Each query shard is cut into messages of `blocks_per_message` blocks of rows. A message
/// goes only as far as some rank on its way has keys that it sees, and only those ranks answer.
/// Bytes: a hop carries Q of one message in the model dtype, an answer output and lse in fp32.
std::unique_ptr<ProgramSource> make_query_ring(const Problem& problem, const Tuning& tuning,
                                               const Partition& partition, ReturnOfPartials when);

}  // namespace ring
