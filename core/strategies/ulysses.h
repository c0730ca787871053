// Ulysses: an all-to-all turns token shards into head shards, attention is local, and back.
#pragma once

#include "core/strategy.h"

namespace ring {

/// "ulysses" deals heads evenly; "ulysses:repeat" sends the same KV head to several ranks when
/// there are more ranks than KV heads; "ulysses:uneven" deals whole KV heads as they come. Source:
/// DeepSpeed-Ulysses, arXiv 2309.14509.
Strategy ulysses_strategy();

/// "ulysses-ring:U": groups of U neighbours split heads, and K and V of those heads walk a ring
/// over the groups. ":U,repeat" and ":U,uneven" as above. Source: arXiv 2405.07719.
Strategy ulysses_ring_strategy();

}  // namespace ring
