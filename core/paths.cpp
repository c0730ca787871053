#include "core/paths.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace ring {

namespace fs = std::filesystem;

namespace {

std::string in_cache(const char* name) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const bool has_cache = cache != nullptr && *cache != '\0';
  const bool has_home = home != nullptr && *home != '\0';
  const fs::path folder =
      has_cache ? fs::path(cache) : fs::path(has_home ? home : "/tmp") / ".cache";
  return (folder / "ringscope" / name).string();
}

}  // namespace

std::string default_machine_path() { return in_cache("machine.json"); }
std::string default_gpu_machine_path() { return in_cache("gpu-machine.json"); }

void make_parent_folders(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) {
    throw Error(ErrorKind::kRunFailed,
                fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
  }
}

void require_place_for(const std::string& path) {
  make_parent_folders(path);
  std::error_code ignored;
  const fs::path folder = fs::absolute(path).parent_path();
  const auto refuse = [&path](const std::string& why) {
    throw Error(ErrorKind::kRunFailed, fmt::format("cannot write {}: {}", path, why));
  };
  if (fs::is_directory(path, ignored)) refuse("it is a folder");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    refuse(std::generic_category().message(errno));
  }
}

void require_other_file(const std::string& output, const std::string& input) {
  std::error_code ignored;
  if (fs::is_regular_file(output, ignored) && fs::equivalent(output, input, ignored)) {
    throw_usage(fmt::format("{} is what is read, and would be replaced", output),
                "choose another name for the output");
  }
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace ring
