// Error: what the libraries throw when the input, the run or the hardware is at fault.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace ring {

/// The kind decides the exit code of the command line (docs/cli.md).
enum class ErrorKind {
  kRunFailed,    ///< A run failed or a threshold was missed: exit 1.
  kUsage,        ///< A bad argument, key, value or file: exit 2.
  kWrongResult,  ///< A numerical result differs from the oracle: exit 3.
  kUnavailable,  ///< Hardware, library or feature not present: exit 4.
  kInterrupted,  ///< Stopped by the user; partial results were written: exit 130.
};

/// Exit code of the command line for an error of this kind.
int exit_code(ErrorKind kind);

/// A fault that is not a bug of ours. `message` says what and where (file:line, key, value);
/// `hint` says what is allowed or what to try, and may be empty.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message, std::string hint = {})
      : std::runtime_error(message), kind_(kind), hint_(std::move(hint)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }

 private:
  ErrorKind kind_;
  std::string hint_;
};

/// Shorthand for the commonest kind.
[[noreturn]] void throw_usage(const std::string& message, std::string hint = {});

[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

/// The word of `allowed` nearest to `word` by edit distance, or "" when none is near enough.
std::string nearest_spelling(std::string_view word, const std::string_view* allowed, int count);

}  // namespace ring

/// Asserts an invariant of ours in every build; a failure is a bug and ends the program.
#define RING_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::ring::assertion_failed(#expression, __FILE__, __LINE__))
