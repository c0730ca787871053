// Probes: runs that measure what attention, copies and waiting cost on the cores of this machine.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>

#include "core/calibration.h"
#include "core/machine.h"

namespace ring {

/// How far a calibration has come.
struct CalibrationProgress {
  std::string probe;  ///< What is being measured, in words.
  double done = 0;    ///< Of the whole, as a fraction of the expected time.
  double elapsed_s = 0;
};

struct CalibrationOptions {
  double budget_s = 45;  ///< Probes are repeated as often as this time allows.
  int least_rounds = 3;  ///< Every probe is measured this often even so, unless it takes a minute.
  int cores = 0;         ///< Cores to use; 0 means all that the process may use.
  const std::atomic<bool>* interrupt = nullptr;  ///< When set, what was measured so far is kept.
  std::function<void(const CalibrationProgress&)> on_progress;  ///< May be empty.
};

struct CalibrationResult {
  Machine machine;
  Calibration calibration;
  bool is_complete = true;  ///< False after an interruption: some parameters are missing.
  double elapsed_s = 0;
};

/// Measures, then fits. The machine has one processor per core, all on one host, and carries
/// messages by copies of the receiving lane (TransferKind::kReceiverCopy). `docs/accuracy.md` says
/// what is measured and how well it predicts.
///
/// An interrupted calibration is returned with is_complete false and Machine::is_calibrated false;
/// its samples are those measured so far, and the machine lacks what was not. Throws
/// Error(kRunFailed) when memory or threads are not to be had.
CalibrationResult calibrate(const CalibrationOptions& options = {});

}  // namespace ring
