#include <fcntl.h>
#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <filesystem>
#include <istream>
#include <streambuf>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/formats/file_io.h"

namespace ring {
namespace {

/// Reads a file through zlib, which passes plain files on as they are.
class GzipBuffer : public std::streambuf {
 public:
  explicit GzipBuffer(const std::string& path) : path_(path), buffer_(size_t{1} << 18) {
    if (std::error_code failed; std::filesystem::is_directory(path, failed)) {
      throw_usage(fmt::format("cannot read {}: it is a directory", path));
    }
    errno = 0;
    file_ = gzopen(path.c_str(), "rbe");
    if (file_ == nullptr) {
      throw_usage(fmt::format("cannot read {}: {}", path, std::generic_category().message(errno)));
    }
    gzbuffer(file_, 1U << 18);
  }
  GzipBuffer(const GzipBuffer&) = delete;
  GzipBuffer& operator=(const GzipBuffer&) = delete;
  ~GzipBuffer() override { gzclose(file_); }

 protected:
  int_type underflow() override {
    const int got = gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
    int status = Z_OK;
    const char* message = gzerror(file_, &status);
    if (got < 0 || status == Z_BUF_ERROR) {
      throw_usage(fmt::format("{}: the gzip data is {} ({})", path_,
                              status == Z_BUF_ERROR ? "cut short" : "damaged", message));
    }
    if (got == 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + got);
    return traits_type::to_int_type(*gptr());
  }

 private:
  std::string path_;
  std::vector<char> buffer_;
  gzFile file_ = nullptr;
};

class GzipInput : public std::istream {
 public:
  explicit GzipInput(const std::string& path) : std::istream(nullptr), buffer_(path) {
    rdbuf(&buffer_);
    exceptions(std::ios::badbit);
  }

 private:
  GzipBuffer buffer_;
};

}  // namespace

std::unique_ptr<std::istream> open_input(const std::string& path) {
  return std::make_unique<GzipInput>(path);
}

}  // namespace ring
