// Library: the machines, scenarios and published measurements that come along, found by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ring {

/// What a folder of the library holds.
enum class LibraryKind { kMachines, kScenarios, kPublished };

struct LibraryEntry {
  std::string name;  ///< File name without its ending.
  std::string path;
};

/// The folder that has the subfolders machines, scenarios and published: $RINGSCOPE_LIBRARY
/// if set, else what is installed beside the program (../share/ringscope), else the source tree
/// that it was built from. Empty when there is none.
std::string library_folder();
/// The subfolder of a kind; throws Error(kUnavailable) when there is no library.
std::string library_folder(LibraryKind kind);

/// What the library has of a kind, by name; empty without a library.
std::vector<LibraryEntry> library_entries(LibraryKind kind);
/// The path of an entry, empty when there is none of this name.
std::string find_in_library(LibraryKind kind, std::string_view name);
/// For messages: "h100-sxm-8" for "h100-sxm8", else up to three that begin with `name`, such as
/// "h100-500w-8, h100-sxm-8 or h100-sxm-16-ib" for "h100"; empty when nothing is near.
std::string nearest_in_library(LibraryKind kind, std::string_view name);

}  // namespace ring
