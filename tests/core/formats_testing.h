// Helpers of the format tests: a folder of one's own, and errors as text.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/error.h"

namespace ring {

/// A folder that lives as long as the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ring-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void put(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string get(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file of tests/data.
inline std::string data_path(const std::string& name) {
  return std::string(RING_SOURCE_DIR) + "/tests/data/" + name;
}

/// "message | hint" of the Error of this kind that `act` throws; anything else fails the test.
template <typename Act>
std::string error_of(Act act, ErrorKind kind = ErrorKind::kUsage) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    return error.what() + std::string(" | ") + error.hint();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

}  // namespace ring
