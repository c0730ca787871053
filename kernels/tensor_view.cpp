#include "kernels/tensor_view.h"

#include "core/error.h"

namespace ring {

TensorView tensor_at(const TensorPlaces& places, const Problem& problem, Payload payload,
                     int part) {
  const bool is_home = places.is_home;
  const HeadRange queries = is_home ? HeadRange{0, problem.heads} : places.buffer_heads;
  switch (payload) {
    case Payload::kKeyValue: {
      const HeadRange keys = places.is_shaped ? kv_heads_of(problem, places.buffer_heads)
                                              : HeadRange{0, problem.kv_heads};
      return part == 0 ? TensorView{places.k, keys, problem.head_dim}
                       : TensorView{places.v, keys, problem.head_dim_v};
    }
    case Payload::kQuery:
      return {is_home ? places.q : places.k, queries, problem.head_dim};
    case Payload::kOutput:
      return {is_home ? places.out : places.k, queries, problem.head_dim_v};
    case Payload::kOutputGradient: {
      std::byte* const there = places.held == Payload::kQuerySide ? places.v : places.k;
      return {is_home ? places.d_out : there, queries, problem.head_dim_v};
    }
    case Payload::kPartial:
    case Payload::kState:
    case Payload::kQuerySide:
    case Payload::kKeyGradients:
    case Payload::kQueryGradients:
      break;
  }
  RING_ASSERT(false);
  return {};
}

}  // namespace ring
