#include "core/tuning.h"

#include <fmt/format.h>

#include "core/error.h"

namespace ring {

std::string_view name(BackwardMoves moves) {
  switch (moves) {
    case BackwardMoves::kAuto:
      return "auto";
    case BackwardMoves::kKeys:
      return "kv";
    case BackwardMoves::kQueries:
      return "q";
  }
  return "?";
}

BackwardMoves parse_backward_moves(std::string_view text) {
  for (const BackwardMoves moves :
       {BackwardMoves::kAuto, BackwardMoves::kKeys, BackwardMoves::kQueries}) {
    if (text == name(moves)) return moves;
  }
  throw_usage(fmt::format("what moves in the backward pass is '{}'", text),
              "allowed: auto, kv (K and V, with dK and dV), q (Q and dO, with dQ)");
}

}  // namespace ring
