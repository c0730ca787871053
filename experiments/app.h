// The command line: finds the verb, runs it, and turns errors into messages and exit codes.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "experiments/console.h"

namespace ring {

/// `arguments` without the program's name. `catch_interrupts` (interrupt.h) is called for a verb
/// with partial results. Returns the exit code (docs/cli.md).
int run_app(const std::vector<std::string>& arguments, Console& console,
            const std::function<const std::atomic<bool>&()>& catch_interrupts);

}  // namespace ring
