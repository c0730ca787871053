// Chrome trace: timelines as the JSON that Perfetto and chrome://tracing show.
#pragma once

#include <span>
#include <string>

#include "core/counters.h"
#include "core/op_names.h"
#include "core/ring_program.h"
#include "core/timeline.h"

namespace ring {

/// A timeline to be shown. With its program, flows follow the message numbers and the arguments of
/// a slice say its block and buffer; without, the messages between two ranks pair in their order.
struct TraceInput {
  const Timeline* timeline = nullptr;
  const RingProgram* program = nullptr;
  /// Names of an imported run: its slices are then written as the kernels and copies that they were
  /// read from, so that reading the trace again gives the same run.
  const OpNames* names = nullptr;
  std::span<const Counter> counters = {};  ///< Sampled beside it.
};

/// One process per rank and timeline, the same ranks side by side; one thread per lane; flows from
/// send to receive; a counter per pair of ranks in GB/s; those that were sampled, as far as the
/// timeline reaches, in a process of the devices. All times share one zero, the earliest
/// moment of any input. Source of the rules: docs/formats.md.
std::string chrome_trace(std::span<const TraceInput> inputs);

/// Packed when the path ends in ".gz". Errors as `write_file`.
void write_chrome_trace(const std::string& path, std::span<const TraceInput> inputs);

}  // namespace ring
