#include "tests/experiments/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace ring::testing {

namespace {

struct Channel {
  int parent = -1, child = -1;
};

Channel make_channel(bool is_terminal) {
  Channel channel;
  int ends[2] = {-1, -1};
  const int result =
      is_terminal ? openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) : pipe2(ends, O_CLOEXEC);
  if (result != 0) throw std::runtime_error("no pipe or terminal to be had");
  channel.parent = ends[0];
  channel.child = ends[1];
  return channel;
}

[[noreturn]] void become_child(const std::vector<std::string>& arguments,
                               const ProcessOptions& options, int out, int err) {
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  unsetenv("NO_COLOR");  // set where the tests run, it would decide for them
  for (const std::string& entry : options.environment) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
  std::vector<std::string> words = {RING_RINGSCOPE};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(RING_RINGSCOPE, argv.data());
  _exit(127);
}

/// Appends what can be read; returns false at the end.
bool drain(int descriptor, std::string& text) {
  char buffer[4096];
  const ssize_t count = read(descriptor, buffer, sizeof buffer);
  if (count <= 0) return false;
  text.append(buffer, static_cast<size_t>(count));
  return true;
}

void collect(pid_t child, int out, int err, const ProcessOptions& options, ProcessResult& result) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::minutes(2);
  bool is_interrupted = false;
  pollfd files[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&result.out, &result.err};
  while (files[0].fd >= 0 || files[1].fd >= 0) {
    if (Clock::now() > deadline) kill(child, SIGKILL);
    if (poll(files, 2, 200) < 0) break;
    for (int i = 0; i < 2; ++i) {
      if (files[i].fd >= 0 && files[i].revents != 0 && !drain(files[i].fd, *texts[i])) {
        files[i].fd = -1;
      }
    }
    if (!is_interrupted && options.interrupt_when && options.interrupt_when(result.err)) {
      kill(child, SIGINT);
      is_interrupted = true;
    }
  }
}

}  // namespace

ProcessResult run_ringscope(const std::vector<std::string>& arguments,
                            const ProcessOptions& options) {
  Channel out;
  if (options.stdout_path.empty()) {
    out = make_channel(false);
  } else {
    out.child = open(options.stdout_path.c_str(), O_WRONLY | O_CLOEXEC);
  }
  const Channel err = make_channel(options.is_err_terminal);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("no process to be had");
  if (child == 0) become_child(arguments, options, out.child, err.child);
  close(out.child);
  close(err.child);
  ProcessResult result;
  collect(child, out.parent, err.parent, options, result);
  int status = 0;
  waitpid(child, &status, 0);
  if (out.parent >= 0) close(out.parent);
  close(err.parent);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "ringscope-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder to be had");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(file(name), std::ios::binary) << text;
  return file(name);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace ring::testing
