// The library that comes along: every machine and scenario in it reads and is found by its name.
#include "core/library.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/formats/file_io.h"
#include "core/formats/machine_json.h"
#include "core/formats/scenario_toml.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

TEST(Library, EveryMachineRoundTripsAndSaysWhereItsValuesAreFrom) {
  const auto machines = library_entries(LibraryKind::kMachines);
  EXPECT_GE(machines.size(), 12U);
  for (const LibraryEntry& entry : machines) {
    SCOPED_TRACE(entry.name);
    const std::string text = read_file(entry.path);
    const MachineFile file = parse_machine(text, entry.path);
    EXPECT_EQ(machine_json(file), text);
    const Machine& machine = file.machine;
    EXPECT_EQ(machine.name, entry.name);
    EXPECT_FALSE(machine.is_calibrated) << "fitted to what others published, not calibrated";
    for (const char* what : {"interference", "memory", "merge", "wakeup", "noise", "launch"}) {
      EXPECT_TRUE(machine.provenance.contains(what)) << what;
    }
    for (const auto& [family, kernels] : machine.kernels) {
      EXPECT_TRUE(machine.provenance.contains("kernels " + family)) << family;
      EXPECT_FALSE(kernels.backward.empty()) << family;
    }
    for (const Link& link : machine.topology.links()) {
      if (link.link_class == "nvlink" || link.link_class == "nic") {
        EXPECT_TRUE(machine.provenance.contains("link " + link.link_class));
      }
    }
    EXPECT_TRUE(machine.trusted.contains("head_dim"));
    EXPECT_FALSE(machine.attend.at(DType::kBF16).tiles.empty());
  }
}

TEST(Library, EveryScenarioReads) {
  for (const LibraryEntry& entry : library_entries(LibraryKind::kScenarios)) {
    EXPECT_NO_THROW(read_scenario(entry.path)) << entry.name;
  }
}

TEST(Library, ATypingErrorIsAnsweredWithTheNearestName) {
  EXPECT_EQ(nearest_in_library(LibraryKind::kMachines, "h100-sxm8"), "h100-sxm-8");
  EXPECT_EQ(nearest_in_library(LibraryKind::kMachines, "h800"), "h800-sxm-8");
  EXPECT_EQ(nearest_in_library(LibraryKind::kMachines, "a100"),
            "a100-pcie-4, a100-pcie-8 or a100-sxm-128-ib");
  EXPECT_EQ(find_in_library(LibraryKind::kMachines, "h100-sxm8"), "");
}

TEST(Library, TheEnvironmentChoosesAnother) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "machines");
  put(folder / "machines/mine.json", "{}");
  put(folder / "machines/notes.txt", "");
  ASSERT_EQ(setenv("RINGSCOPE_LIBRARY", folder.path().c_str(), 1), 0);
  const auto entries = library_entries(LibraryKind::kMachines);
  const std::string published = library_folder(LibraryKind::kPublished);
  unsetenv("RINGSCOPE_LIBRARY");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].name, "mine");
  EXPECT_EQ(published, folder / "published");
}

}  // namespace
}  // namespace ring
