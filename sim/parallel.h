// parallel_for: independent pieces of work on a few threads, stopped when asked to.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace ring {

/// Calls `work(i)` for every i below `count`, in ascending order of starting. `threads` of 0 means
/// as many as the machine runs at once. When `stop` is requested no further piece is started. An
/// exception of `work` stops the rest too and is thrown again here (that of the smallest i).
/// Returns whether all pieces were done.
bool parallel_for(size_t count, int threads, const std::stop_token& stop,
                  const std::function<void(size_t)>& work);

}  // namespace ring
