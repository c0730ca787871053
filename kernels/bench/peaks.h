// Loops that reach the limits of this machine, one thread.
#pragma once

#include <cstdint>

namespace ring::bench {

// Independent fp32 multiply-adds in registers on the instruction set in use; returns the number of
// floating-point operations, each multiply-add counting two.
double run_fma(int64_t iterations);

// As above in products of bf16 pairs with fp32 sums, four operations a lane.
double run_bf16_products(int64_t iterations);

// Sums `bytes` bytes of fp32 (a multiple of 4096) `passes` times; returns the sum.
float run_read(const float* data, int64_t bytes, int64_t passes);

}  // namespace ring::bench
