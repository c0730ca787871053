// Verb: one command of `ringscope`, in one file of experiments/verbs.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "experiments/console.h"
#include "experiments/verb_options.h"

namespace ring {

/// What a verb gets to run.
struct VerbContext {
  Console& console;
  /// Set by Ctrl-C. A verb that sees it writes what it has, marked partial, and throws or returns
  /// kInterrupted.
  const std::atomic<bool>& is_interrupted;
};

class Verb {
 public:
  virtual ~Verb() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view summary() const = 0;
  /// Declares the options that the verb uses, and no others.
  virtual void declare(VerbOptions& options) = 0;
  /// Whether Ctrl-C leaves something worth keeping. Verbs without it end at once, as programs do
  /// that know nothing of signals; all others look at VerbContext::is_interrupted.
  virtual bool has_partial_results() const { return true; }
  /// Returns the exit code; throws Error for what is the input's, the run's or the hardware's
  /// fault.
  virtual int run(VerbContext& context) = 0;
};

/// All verbs, in the order in which they are listed (verbs.cpp).
std::vector<std::unique_ptr<Verb>> make_verbs();

}  // namespace ring
