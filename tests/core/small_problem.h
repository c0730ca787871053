// A small attention problem with unlike dimensions, for tests of programs.
#pragma once

#include <string>

#include "core/problem.h"

namespace ring::testing_support {

inline Problem small_problem(int64_t seq_len, const std::string& mask) {
  Problem problem;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.head_dim = 8;
  problem.head_dim_v = 6;
  problem.mask = Mask::parse(mask, seq_len);
  return problem;
}

}  // namespace ring::testing_support
