#include "core/formats/file_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/formats/gzip.h"

namespace ring {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Closes and returns 0 or errno.
  int close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result == 0 ? 0 : errno;
  }

 private:
  int fd_;
};

[[noreturn]] void throw_unwritten(const std::string& path, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    hint = "Free some space or choose another place; nothing that was there before is lost.";
  }
  throw Error(ErrorKind::kRunFailed, fmt::format("cannot write {}: {}", path, reason(error)), hint);
}

/// 0 or errno.
int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

void write_directly(const std::string& path, std::string_view content) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) throw_unwritten(path, errno);
  int error = write_all(file.get(), content);
  if (error == 0) error = file.close();
  if (error != 0) throw_unwritten(path, error);
}

/// A name beside `target` that no other process and no earlier crash has taken.
Descriptor create_temporary(const std::string& target, mode_t mode, std::string& temporary) {
  for (int attempt = 0;; ++attempt) {
    temporary = fmt::format("{}.{}-{}.tmp", target, ::getpid(), attempt);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST || attempt == 1000) return Descriptor(fd);
  }
}

void sync_folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
}

void write_atomically(const std::string& path, const std::string& target, mode_t mode,
                      std::string_view content) {
  std::string temporary;
  Descriptor file = create_temporary(target, mode, temporary);
  if (file.get() < 0) throw_unwritten(path, errno);
  int error = write_all(file.get(), content);
  if (error == 0 && ::fsync(file.get()) != 0 && errno != EINVAL) error = errno;
  if (error == 0) error = file.close();
  if (error == 0 && ::rename(temporary.c_str(), target.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(temporary.c_str());
    throw_unwritten(path, error);
  }
  sync_folder_of(target);
}

/// Opens for reading; refuses directories.
int open_for_reading(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw_usage(fmt::format("cannot read {}: {}", path, reason(errno)));
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(fd);
    throw_usage(fmt::format("cannot read {}: it is a directory", path));
  }
  return fd;
}

}  // namespace

bool ends_in_gz(std::string_view path) { return path.ends_with(".gz"); }

std::string read_file(const std::string& path, int64_t limit_bytes) {
  const Descriptor file(open_for_reading(path));
  std::string content;
  std::string piece(size_t{1} << 18, '\0');
  while (true) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0) {
      if (errno == EINTR) continue;
      throw_usage(fmt::format("cannot read {}: {}", path, reason(errno)));
    }
    if (got == 0) break;
    content.append(piece, 0, static_cast<size_t>(got));
    if (static_cast<int64_t>(content.size()) > limit_bytes) {
      throw_usage(fmt::format("{}: larger than {} bytes", path, limit_bytes));
    }
  }
  return is_gzip(content) ? gunzip(content, path, limit_bytes) : content;
}

void write_file(const std::string& path, std::string_view content) {
  std::string packed;
  if (ends_in_gz(path)) {
    packed = gzip(content);
    content = packed;
  }
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) throw_unwritten(path, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) return write_directly(path, content);
  std::error_code failed;
  std::string target = path;
  if (exists && std::filesystem::is_symlink(path, failed)) {
    target = std::filesystem::canonical(path, failed).string();
    if (failed) throw_unwritten(path, failed.value());
  }
  const mode_t mode = exists ? (status.st_mode & 07777) : mode_t{0666};
  write_atomically(path, target, mode, content);
}

}  // namespace ring
