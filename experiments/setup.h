// Setup: problem, tuning and machine of one command, from scenario file, model file and options.
#pragma once

#include <optional>
#include <string>

#include "core/scenario.h"
#include "experiments/console.h"
#include "experiments/verb_options.h"

namespace ring {

/// The options that several verbs share, as typed. A verb declares the groups that it uses.
class SetupOptions {
 public:
  void declare_problem(VerbOptions& options);
  void declare_tuning(VerbOptions& options);
  /// The same for verbs that go through all strategies.
  void declare_tuning_of_all(VerbOptions& options);
  void declare_machine(VerbOptions& options);
  /// --scenario and --print-config.
  void declare_scenario(VerbOptions& options);

  /// Defaults, then the scenario file, then model file and options; validated.
  /// Throws Error(kUsage).
  Scenario resolve() const;
  bool is_any_given() const;
  /// Refuses options as typed that the strategy has no use for.
  void refuse_unused(const Tuning& tuning) const;
  /// Whether an option says what is computed, or how; the machine does not count.
  bool is_program_given() const;
  bool is_config_wanted() const { return is_config_wanted_; }
  /// With --print-config prints the scenario file that reproduces the command and returns true.
  bool print_config(const Scenario& scenario, Console& console) const;

 private:
  bool has_problem() const;
  void apply_model(Scenario& scenario) const;
  void apply_problem(Problem& problem) const;
  void apply_tuning(Tuning& tuning) const;
  void apply_topology(Scenario& scenario) const;

  std::optional<std::string> scenario_, model_, machine_, topology_;
  std::optional<std::string> mask_, dtype_, pass_;
  std::optional<int64_t> layer_, batch_, heads_, kv_heads_, head_dim_, head_dim_v_, seq_;
  std::optional<std::string> strategy_, partition_, backward_;
  std::optional<int64_t> ranks_, block_, blocks_per_message_, depth_, lanes_, accumulate_;
  std::optional<Picoseconds> optimizer_gap_ps_;
  bool is_deterministic_ = false;
  bool is_config_wanted_ = false;
};

}  // namespace ring
