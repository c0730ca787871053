// The worked example of docs/strategies.md: it builds, its program is sound, and the page shows it.
#include <gtest/gtest.h>

#include <string>

#include "core/formats/file_io.h"
#include "core/program_check.h"
#include "docs/examples/doubling.cpp"
#include "tests/core/small_problem.h"

namespace ring {
namespace {

TEST(ExampleStrategy, ItsProgramIsSound) {
  const Strategy strategy = doubling_strategy();
  for (const int ranks : {1, 2, 4, 8}) {
    for (const Pass pass : {Pass::kForward, Pass::kForwardBackward}) {
      RingProgram program;
      program.problem = testing_support::small_problem(50, "causal");
      program.problem.pass = pass;
      program.tuning.block_tokens = 3;
      program.partition = Partition::zigzag(50, ranks);
      const auto source = strategy.make(program.problem, program.tuning, program.partition);
      RingProgram made = materialize(*source);
      made.has_attention = true;
      made.problem = program.problem;
      made.tuning = program.tuning;
      made.partition = program.partition;
      for (const Fault& fault : check_program(made)) ADD_FAILURE() << ranks << fault.message;
    }
  }
}

TEST(ExampleStrategy, ThePageShowsTheFile) {
  const std::string folder = std::string(RING_SOURCE_DIR) + "/docs/";
  const std::string page = read_file(folder + "strategies.md");
  EXPECT_NE(page.find(read_file(folder + "examples/doubling.cpp")), std::string::npos);
}

}  // namespace
}  // namespace ring
