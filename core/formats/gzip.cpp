#include "core/formats/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace ring {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // zlib: +16 chooses the gzip wrapper.
constexpr size_t kPieceBytes = size_t{1} << 18;

struct Inflater {
  z_stream stream{};
  Inflater() { RING_ASSERT(inflateInit2(&stream, kGzipWindowBits) == Z_OK); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

struct Deflater {
  z_stream stream{};
  Deflater() {
    RING_ASSERT(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindowBits, 8,
                             Z_DEFAULT_STRATEGY) == Z_OK);
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream); }
};

/// zlib counts in 32 bits: hands it the next piece of `bytes` and drops that from the front.
void feed(z_stream& stream, std::string_view& bytes) {
  const size_t size = std::min<size_t>(bytes.size(), size_t{1} << 30);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(size);
  bytes.remove_prefix(size);
}

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

std::string gzip(std::string_view bytes) {
  Deflater deflater;
  z_stream& stream = deflater.stream;
  std::string out;
  std::string piece(kPieceBytes, '\0');
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    if (stream.avail_in == 0 && !bytes.empty()) feed(stream, bytes);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    status = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    RING_ASSERT(status != Z_STREAM_ERROR);
    out.append(piece, 0, piece.size() - stream.avail_out);
  }
  return out;
}

std::string gunzip(std::string_view bytes, std::string_view what, int64_t limit_bytes) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string out;
  std::string piece(kPieceBytes, '\0');
  while (true) {
    if (stream.avail_in == 0) {
      if (bytes.empty()) throw_usage(fmt::format("{}: the gzip data is cut short", what));
      feed(stream, bytes);
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    out.append(piece, 0, piece.size() - stream.avail_out);
    if (static_cast<int64_t>(out.size()) > limit_bytes) {
      throw_usage(fmt::format("{}: unpacks to more than {} bytes", what, limit_bytes));
    }
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0 && bytes.empty()) return out;
      RING_ASSERT(inflateReset(&stream) == Z_OK);
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      throw_usage(fmt::format("{}: the gzip data is damaged ({})", what,
                              stream.msg == nullptr ? "unknown fault" : stream.msg));
    }
  }
}

}  // namespace ring
