// Why: the reasons of one run, worked out and put into plain sentences.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/blame.h"
#include "core/bubbles.h"
#include "core/critical_path.h"
#include "core/machine.h"
#include "core/ring_program.h"
#include "core/timeline.h"
#include "sim/what_if.h"

namespace ring {

struct WhyOptions {
  bool with_what_if = true;  ///< Takes a few dozen simulations on the machine.
  WhatIfOptions what_if;
};

struct Why {
  Picoseconds makespan_ps = 0;
  TimelineOrigin origin = TimelineOrigin::kPredicted;
  bool is_complete = true;
  CriticalPath path;
  Blame blame;
  RunAccount account;
  std::vector<std::vector<Picoseconds>> slack_ps;  ///< By rank and op; -1: did not run.
  std::optional<WhatIf> what_if;
  std::string what_if_missing;         ///< Why there is none, when one was asked for.
  std::vector<std::string> sentences;  ///< The gravest reason first.
};

/// `machine` may be null: then nothing is known of sharing, and there is no what-if. Throws
/// Error(kUsage) when the timeline is not of the program, or is empty.
Why explain_run(const RingProgram& program, const Timeline& timeline, const Machine* machine,
                const WhyOptions& options = {});

/// "NIC n0.nic (n0.nic -> network, 25.0 GB/s)" for the link of an item, "" when it has none.
std::string link_of(const BlameItem& item, const Machine* machine);

}  // namespace ring
