// GPU probes: runs that measure what attention, merges and messages cost on CUDA devices.
#pragma once

#include <vector>

#include "kernels/cuda/runtime.h"
#include "kernels/probe_programs.h"
#include "kernels/probes.h"

namespace ring::cuda {

/// Where the ranks of a probe program run.
struct GpuProbe {
  ProbeProgram probe;
  std::vector<int> devices;  ///< By rank.
};

/// The programs of a calibration: attention over tokens, blocks, head dims, masks and both dtypes,
/// small enough that launching shows and large enough that the device is full; merges; messages on
/// one device and, where there are more, between two; attention beside messages.
/// `largest_tokens` bounds the shapes, for devices that are only played.
std::vector<GpuProbe> gpu_probe_programs(int devices, Tokens largest_tokens = 16384);

/// As calibrate(), on the devices of the runtime. The machine has one processor a device. Ranks
/// that share a device pass messages by copies on it (TransferKind::kReceiverCopy); with more
/// devices links to a switch carry them, as wide as measured between two.
CalibrationResult calibrate_gpu(DeviceRuntime& runtime, const CalibrationOptions& options,
                                Tokens largest_tokens = 16384);

}  // namespace ring::cuda
