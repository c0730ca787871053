// Interrupt: the flag that Ctrl-C sets and that long jobs look at.
#pragma once

#include <atomic>

namespace ring {

/// Makes SIGINT and SIGTERM set the returned flag; the second of a kind ends the process at once.
/// Everything else gets the flag as a parameter.
const std::atomic<bool>& catch_interrupts();

}  // namespace ring
