#include "core/formats/machine_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/core/formats_random.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

RC_GTEST_PROP(MachineJson, RoundTripIsEqualByteForByte, (uint64_t seed)) {
  const MachineFile file = RandomFiles(seed).machine();
  const std::string text = machine_json(file);
  const MachineFile read = parse_machine(text, "m.json");
  RC_ASSERT(machine_json(read) == text);
  RC_ASSERT(read.machine.memory_capacity_bytes == file.machine.memory_capacity_bytes);
  RC_ASSERT(read.machine.wakeup_s == file.machine.wakeup_s);
  RC_ASSERT(read.machine.processors == file.machine.processors);
  RC_ASSERT(read.machine.topology.links().size() == file.machine.topology.links().size());
  RC_ASSERT(read.calibration.samples.size() == file.calibration.samples.size());
}

RC_GTEST_PROP(MachineJson, EveryTruncationIsRefused, (uint64_t seed)) {
  const std::string text = machine_json(RandomFiles(seed).machine());
  const size_t length = seed % (text.size() - 1);  // The last byte is a newline.
  try {
    parse_machine(text.substr(0, length), "m.json");
    RC_FAIL("a part was read as a whole");
  } catch (const Error& error) {
    RC_ASSERT(std::string(error.what()).find("m.json:") == 0U);
  }
}

/// A machine file as a document that can be spoilt.
ordered_json document() {
  MachineFile file;
  file.machine.name = "pair";
  file.machine.topology.add_node({"core 0", NodeKind::kCore, 0});
  file.machine.topology.add_node({"core 1", NodeKind::kCore, 0});
  file.machine.topology.connect(0, 1, 1e10, 500, "memory");
  file.machine.processors = {0, 1};
  file.machine.attend[DType::kF32] = {};
  return ordered_json::parse(machine_json(file));
}

std::string refusal(const ordered_json& value) {
  return error_of([&] { parse_machine(value.dump(), "m.json"); });
}

// What came later may be missing: such files know no backward pass.
bool is_later(const std::string& key) {
  return key == "backward" || key == "add_bytes_per_s" || key == "delta_bytes_per_s";
}

TEST(MachineJson, EveryKeyIsNeeded) {
  const ordered_json whole = document();
  for (const auto& item : whole.items()) {
    if (is_later(item.key())) continue;
    ordered_json part = whole;
    part.erase(item.key());
    EXPECT_THAT(refusal(part), AllOf(HasSubstr("m.json"), HasSubstr(item.key())));
  }
}

TEST(MachineJson, EveryKeyHasAType) {
  const ordered_json whole = document();
  for (const auto& item : whole.items()) {
    ordered_json wrong = whole;
    wrong[item.key()] = nullptr;
    EXPECT_THAT(refusal(wrong), AllOf(HasSubstr("/" + item.key()), HasSubstr("found null")));
  }
}

TEST(MachineJson, NamesWhatIsWrong) {
  ordered_json value = document();
  value["wakeup"] = 1;
  EXPECT_THAT(refusal(value), HasSubstr("unknown key \"wakeup\" | Did you mean \"wakeup_s\"?"));

  value = document();
  value["topology"]["nodes"][1]["kind"] = "gpux";
  EXPECT_THAT(refusal(value), AllOf(HasSubstr("m.json: /topology/nodes/1/kind: \"gpux\""),
                                    HasSubstr("Did you mean gpu?")));
  value = document();
  value["topology"]["links"][0]["to"] = 2;
  EXPECT_THAT(refusal(value), HasSubstr("/topology/links/0/to: there is no node 2"));

  value = document();
  value["processors"][1] = 7;
  EXPECT_THAT(refusal(value), HasSubstr("/processors/1: there is no node 7"));

  value = document();
  value["attend"]["fp32"]["launch_s"] = -1;
  EXPECT_THAT(refusal(value), HasSubstr("/attend/fp32/launch_s: -1 is negative"));

  value = document();
  value["attend"]["fp8"] = value["attend"]["fp32"];
  EXPECT_THAT(refusal(value), AllOf(HasSubstr("\"fp8\""), HasSubstr("fp32, bf16, fp16")));

  value = document();
  value["schema_version"] = 2;
  EXPECT_THAT(refusal(value), HasSubstr("version 2 is newer than version 1"));

  value = document();
  value["schema"] = "ringscope-run";
  EXPECT_THAT(refusal(value), HasSubstr("this is a \"ringscope-run\" file"));
  EXPECT_THAT(error_of([] { parse_machine("[]", "m.json"); }),
              HasSubstr("not a file of ringscope"));
}

TEST(MachineJson, FileRoundTrip) {
  const TemporaryFolder folder;
  const MachineFile file = RandomFiles(7).machine();
  write_machine(folder / "m.json", file);
  EXPECT_EQ(machine_json(read_machine(folder / "m.json")), get(folder / "m.json"));
}

}  // namespace
}  // namespace ring
