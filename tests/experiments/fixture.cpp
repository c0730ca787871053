#include "tests/experiments/fixture.h"

#include <gtest/gtest.h>

#include "core/formats/machine_json.h"

namespace ring::testing {

std::string write_test_machine(const TemporaryFolder& folder) {
  MachineFile file;
  Machine& machine = file.machine;
  machine.name = "test machine";
  machine.is_calibrated = true;
  machine.transfer = TransferKind::kReceiverCopy;
  for (const char* core : {"core0", "core1"}) {
    machine.processors.push_back(machine.topology.add_node({core, NodeKind::kCore, 0}));
  }
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    machine.attend[dtype].launch_s = 1e-6;
    machine.attend[dtype].per_pair_dim_s = 40e-12;
    machine.backward[dtype] = machine.attend[dtype];
  }
  machine.copy = {1e-6, 10e9};
  machine.merge_bytes_per_s = 10e9;
  machine.memory_bytes_per_s = 20e9;
  machine.wakeup_s = 5e-6;
  machine.noise = {0.02, 0.03};
  machine.trusted["block_tokens"] = {64, 1024};
  const std::string path = folder.file("machine.json");
  write_machine(path, file);
  return path;
}

std::vector<std::string> small_problem() {
  return {"--heads", "2", "--head-dim", "32", "--seq", "200", "--block", "64", "--ranks", "3"};
}

std::vector<std::string> small(const std::string& verb, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {verb};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const std::vector<std::string> problem = small_problem();
  arguments.insert(arguments.end(), problem.begin(), problem.end());
  return arguments;
}

nlohmann::json run_json_verb(std::vector<std::string> arguments, int code) {
  arguments.emplace_back("--json");
  const ProcessResult result = run_ringscope(arguments);
  EXPECT_EQ(result.code, code) << result.err;
  const auto document = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << result.out;
  return document;
}

}  // namespace ring::testing
