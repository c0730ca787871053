// Which Highway targets the kernels are compiled for. Include before <hwy/foreach_target.h>.
#pragma once

// SSSE3 alone is older than any machine worth timing. The scalable vectors (SVE, RVV) cannot be
// held in arrays of accumulators; NEON has the same peak on the SVE cores with 128-bit units.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
