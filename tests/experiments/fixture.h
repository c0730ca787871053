// What tests of verbs share: a small machine profile and quick options.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/experiments/process.h"

namespace ring::testing {

/// Writes the profile of a machine with two cores that did not exist, with noise, and returns its
/// path.
std::string write_test_machine(const TemporaryFolder& folder);

/// Options of a problem that runs in milliseconds.
std::vector<std::string> small_problem();

/// `verb`, then `more`, then those options.
std::vector<std::string> small(const std::string& verb, const std::vector<std::string>& more = {});

/// Runs with --json added, expects `code` and exactly one document.
nlohmann::json run_json_verb(std::vector<std::string> arguments, int code = 0);

}  // namespace ring::testing
