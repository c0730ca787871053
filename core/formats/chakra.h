// Chakra execution traces: ring programs for other simulators, and theirs as ring programs.
// Schema: message GlobalMetadata and Node of et_def.proto, MLCommons Chakra. A file holds one rank:
// messages, each after its length, first the metadata, then the nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/machine.h"
#include "core/ring_program.h"
#include "core/timeline.h"

namespace ring {

/// The trace of every rank. Lane order, dependencies and buffer credits become data dependencies;
/// computation gets the time that the machine takes alone, rounded to microseconds as the schema
/// wants it (the exact time stands in an attribute of ours). Throws as `op_seconds`, and
/// Error(kUsage) for more than 2^31 messages between two ranks.
std::vector<std::string> chakra_traces(const RingProgram& program, const Machine& machine);

/// The same with the times that computation took in a run; ops that did not run take none.
/// `timeline` must be of the program: throws Error(kUsage) for ops that the program does not have.
std::vector<std::string> chakra_traces(const RingProgram& program, const Timeline& timeline);

/// Writes PREFIX.RANK.et for every rank; returns the paths.
std::vector<std::string> write_chakra(const std::string& prefix, const RingProgram& program,
                                      const Timeline& timeline);
std::vector<std::string> write_chakra(const std::string& prefix, const RingProgram& program,
                                      const Machine& machine);

struct ChakraReadOptions {
  /// Speed of nodes that state operations but no duration; 0: such nodes are refused.
  double flops_per_s = 0;
};

/// Reads one trace per rank as a program of compute, send and receive ops. A compute op lasts what
/// its node states. Ops get lanes in such a way that lane order adds no dependency, except that a
/// rank computes one op at a time, in the order of node ids where dependencies leave a choice.
/// Sends are eager unless the trace was written by `chakra_traces` and says otherwise.
/// Throws Error(kUsage), naming the trace and the node, for data that is cut short, unknown or
/// missing dependencies, cycles, ids that come twice, peers that do not exist, and nodes of other
/// types (collectives, memory): those must be expanded into sends and receives first.
RingProgram parse_chakra(const std::vector<std::string>& traces,
                         const std::vector<std::string>& names,
                         const ChakraReadOptions& options = {});

/// Reads PREFIX.0.et, PREFIX.1.et, ... as far as they exist.
RingProgram read_chakra(const std::string& prefix, const ChakraReadOptions& options = {});

}  // namespace ring
