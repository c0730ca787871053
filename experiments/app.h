// The command line: finds the verb, runs it, and turns errors into messages and exit codes.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "experiments/console.h"

namespace ring {

/// `arguments` without the program's name. Returns the exit code (docs/cli.md).
int run_app(const std::vector<std::string>& arguments, Console& console,
            const std::atomic<bool>& is_interrupted);

}  // namespace ring
