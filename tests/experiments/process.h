// Runs `ringscope` as a child process and collects what it said.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ring::testing {

struct ProcessResult {
  std::string out, err;
  int code = -1;  ///< Exit code, or 128 + the signal that ended it.
};

struct ProcessOptions {
  std::vector<std::string> environment;  ///< "NAME=value", added to the parent's.
  std::string stdout_path;               ///< Instead of a pipe, for example /dev/full.
  bool is_err_terminal = false;          ///< stderr is a pseudo terminal.
  /// Called with what is on stderr so far; once it returns true the child gets SIGINT.
  std::function<bool(const std::string& err)> interrupt_when;
  std::string folder = {};  ///< To run in, instead of the parent's.
};

/// `ringscope arguments...`. A child that takes more than two minutes is killed.
ProcessResult run_ringscope(const std::vector<std::string>& arguments,
                            const ProcessOptions& options = {});

/// A folder that is gone with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes `text` to a file of that name and returns its path.
  std::string write(const std::string& name, const std::string& text) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string read_text(const std::string& path);

}  // namespace ring::testing
