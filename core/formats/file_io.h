// Whole files in and out: read with a size limit, written so that nothing old is lost on failure.
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>

namespace ring {

/// Files that are read whole may have up to this many bytes, unpacked.
inline constexpr int64_t kReadLimitBytes = int64_t{512} << 20;

/// The content of a file, unpacked when it is gzip. Pipes are read to their end. Throws
/// Error(kUsage) naming the path when there is no such file, it is a directory, it cannot be read,
/// it is larger than `limit_bytes` (packed or unpacked), or its gzip data is cut short.
std::string read_file(const std::string& path, int64_t limit_bytes = kReadLimitBytes);

/// A file as a stream of unpacked bytes, for files too large to be kept. Opening throws as
/// `read_file` does; a fault met later ends the stream with badbit set and throws Error(kUsage)
/// from the read, for which `exceptions(badbit)` is set.
std::unique_ptr<std::istream> open_input(const std::string& path);

/// Writes a whole file: a temporary file beside it is written, flushed to disk and renamed over it,
/// so that a reader sees the old content or the new and a failure leaves the old. Packs when the
/// name ends in ".gz". Devices and pipes are written to directly; a symbolic link is followed.
/// Throws Error(kRunFailed) naming the path and the reason, for example a full disk.
void write_file(const std::string& path, std::string_view content);

bool ends_in_gz(std::string_view path);

}  // namespace ring
