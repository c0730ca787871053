// Partitions that are made for a mask: documents zigzagged one by one, and ranges of equal cost.
#pragma once

#include <span>
#include <string_view>

#include "core/mask.h"
#include "core/partition.h"

namespace ring {

/// Every document of the mask is cut and dealt like Partition::zigzag, so that each document is
/// balanced by itself. Documents are runs of queries that see no key before their first one and
/// none after their last; a mask without such runs is one document.
Partition document_zigzag(const Mask& mask, int ranks);

/// Contiguous ranges in rank order whose visible pairs are as `speeds` are to each other, by exact
/// counts; all equal when it is empty. Throws Error(kUsage) unless there is one positive speed a
/// rank.
Partition balanced(const Mask& mask, int ranks, std::span<const double> speeds = {});

/// What Partition::parse reads, and "doc-zigzag", "balanced" and "balanced:1,0.5,1".
Partition make_partition(std::string_view text, const Mask& mask, int ranks);
/// Whether the text names a partition that depends on the mask.
bool is_made_for_mask(std::string_view text);

}  // namespace ring
