// Tree decode: few queries, sharded keys; queries go down a tree, partial results come up merged.
#pragma once

#include "core/strategy.h"

namespace ring {

/// For every rank that asks, the other ranks form a binomial tree: Q goes down it, each rank
/// attends its own keys, merges what its children answer, and sends one partial result up. log2 P
/// hops instead of P - 1. Rows that see nothing are not sent. Source: Tree Attention, arXiv
/// 2408.04093.
Strategy tree_decode_strategy();

}  // namespace ring
