// The single checks of which program_check is made; each appends the faults it finds.
#pragma once

#include <map>
#include <vector>

#include "core/program_check.h"

namespace ring::check {

/// Pairs every send with its receive.
struct Match {
  std::map<OpId, OpId> receive_of, send_of;
};

void check_ops(const RingProgram& program, std::vector<Fault>& faults);
Match check_messages(const RingProgram& program, std::vector<Fault>& faults);
void check_deadlock(const RingProgram& program, const Match& match, std::vector<Fault>& faults);
void check_buffers(const RingProgram& program, const Match& match, std::vector<Fault>& faults);
void check_pairs(const RingProgram& program, std::vector<Fault>& faults);
/// Expects a program without deadlock; finds nothing in one that has any.
void check_gradients(const RingProgram& program, const Match& match, std::vector<Fault>& faults);

}  // namespace ring::check
