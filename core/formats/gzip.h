// Gzip in memory: what trace viewers and profilers compress their files with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ring {

/// True when the bytes begin as a gzip file does.
bool is_gzip(std::string_view bytes);

/// The same bytes in give the same bytes out: no time stamp and no name are stored.
std::string gzip(std::string_view bytes);

/// All members of a gzip file, one after the other. `what` names the file in messages. Throws
/// Error(kUsage) when it is cut short or damaged, or when it unpacks to more than `limit_bytes`.
std::string gunzip(std::string_view bytes, std::string_view what, int64_t limit_bytes);

}  // namespace ring
