#include "core/paths.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"

namespace ring {

namespace fs = std::filesystem;

std::string default_machine_path() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const bool has_cache = cache != nullptr && *cache != '\0';
  const fs::path folder =
      has_cache ? fs::path(cache) : fs::path(home == nullptr ? "/tmp" : home) / ".cache";
  return (folder / "ringscope" / "machine.json").string();
}

void make_parent_folders(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error) {
    throw Error(ErrorKind::kRunFailed,
                fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
  }
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

}  // namespace ring
