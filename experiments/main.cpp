#include <cstdlib>
#include <string>
#include <vector>

#include "experiments/app.h"
#include "experiments/interrupt.h"

int main(int argc, char** argv) {
  // Where /sys is not to be seen, as in some containers, hwloc itself would print to stderr.
  setenv("HWLOC_HIDE_ERRORS", "2", 0);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  ring::Console console = ring::process_console();
  return ring::run_app(arguments, console, ring::catch_interrupts);
}
