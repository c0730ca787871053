#include <string>
#include <vector>

#include "experiments/app.h"
#include "experiments/interrupt.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  ring::Console console = ring::process_console();
  return ring::run_app(arguments, console, ring::catch_interrupts());
}
