// SliceText: a slice in words, for hints, for people who cannot see the picture, and for tests.
#pragma once

#include <string>
#include <vector>

#include "core/timeline.h"

namespace ring {

/// "attend", "send to 1", "receive from 3"; with the KV shard where there is one.
std::string slice_title(const Slice& slice);

/// Lines: what it is and where, when, how long it worked and waited, bytes and flops with their
/// rates. `other` is the same op of the other timeline, null when there is none.
std::vector<std::string> describe_slice(const Slice& slice, TimelineOrigin origin,
                                        const Slice* other);

}  // namespace ring
