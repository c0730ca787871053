#include "core/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/library_place.h"

namespace ring {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view subfolder(LibraryKind kind) {
  switch (kind) {
    case LibraryKind::kMachines:
      return "machines";
    case LibraryKind::kScenarios:
      return "scenarios";
    case LibraryKind::kPublished:
      return "published";
  }
  return {};
}

constexpr std::string_view ending(LibraryKind kind) {
  switch (kind) {
    case LibraryKind::kMachines:
      return ".json";
    case LibraryKind::kScenarios:
      return ".toml";
    case LibraryKind::kPublished:
      return ".csv";
  }
  return {};
}

bool is_library(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / subfolder(LibraryKind::kMachines), ignored) ||
         fs::is_directory(folder / subfolder(LibraryKind::kPublished), ignored);
}

}  // namespace

std::string library_folder() {
  const char* chosen = std::getenv("RINGSCOPE_LIBRARY");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path installed = program.parent_path().parent_path() / "share" / "ringscope";
    if (is_library(installed)) return installed.string();
  }
  const fs::path source(kLibrarySource);
  return is_library(source) ? source.string() : std::string();
}

std::string library_folder(LibraryKind kind) {
  const std::string folder = library_folder();
  if (folder.empty()) {
    throw Error(ErrorKind::kUnavailable, "the library of machines was not found",
                "set RINGSCOPE_LIBRARY to the folder experiments/ of the source tree");
  }
  return (fs::path(folder) / subfolder(kind)).string();
}

std::vector<LibraryEntry> library_entries(LibraryKind kind) {
  std::vector<LibraryEntry> entries;
  const std::string folder = library_folder();
  if (folder.empty()) return entries;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(fs::path(folder) / subfolder(kind), error)) {
    if (file.path().extension() != ending(kind)) continue;
    entries.push_back({file.path().stem().string(), file.path().string()});
  }
  std::sort(entries.begin(), entries.end(),
            [](const LibraryEntry& a, const LibraryEntry& b) { return a.name < b.name; });
  return entries;
}

std::string find_in_library(LibraryKind kind, std::string_view name) {
  for (const LibraryEntry& entry : library_entries(kind)) {
    if (entry.name == name) return entry.path;
  }
  return {};
}

std::string nearest_in_library(LibraryKind kind, std::string_view name) {
  const std::vector<LibraryEntry> entries = library_entries(kind);
  std::vector<std::string_view> names;
  std::vector<std::string_view> beginning;
  for (const LibraryEntry& entry : entries) {
    names.push_back(entry.name);
    if (!name.empty() && entry.name.starts_with(name) && beginning.size() < 3) {
      beginning.push_back(entry.name);
    }
  }
  const std::string near = nearest_spelling(name, names.data(), static_cast<int>(names.size()));
  if (!near.empty() || beginning.empty()) return near;
  const std::string_view last = beginning.back();
  beginning.pop_back();
  if (beginning.empty()) return std::string(last);
  return fmt::format("{} or {}", fmt::join(beginning, ", "), last);
}

}  // namespace ring
