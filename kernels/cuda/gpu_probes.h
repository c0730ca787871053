// GPU probes: runs that measure what attention, merges and messages cost on CUDA devices.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/device_plan.h"
#include "kernels/cuda/runtime.h"
#include "kernels/probe_programs.h"
#include "kernels/probes.h"

namespace ring::cuda {

/// Where the ranks of a probe program run.
struct GpuProbe {
  ProbeProgram probe;
  std::vector<int> devices;  ///< By rank.
  Carrier carrier = Carrier::kCopies;
};

/// Pairs of devices, the lower number first, by the class of the way between them.
using LinkClasses = std::map<std::string, std::vector<std::pair<int, int>>>;
LinkClasses link_classes(const DeviceRuntime& runtime);

struct GpuProbeOptions {
  /// Of messages between devices. With exchanges the runtime has a rank on every device.
  Carrier carrier = Carrier::kCopies;
  Tokens largest_tokens = 16384;  ///< Bounds the shapes, for devices that are only played.
};

/// The programs of a calibration: attention over tokens, blocks, head dims, masks and both dtypes,
/// small enough that launching shows and large enough that the device is full; merges; messages on
/// one device (by copies alone) and over every class of links; attention beside messages, and
/// messages beside attention; one stream that waits for another.
std::vector<GpuProbe> gpu_probe_programs(const LinkClasses& links, const GpuProbeOptions& options);

/// As calibrate(), on the devices of the runtime. The machine has one processor a device. Ranks
/// that share a device pass messages by copies on it (TransferKind::kReceiverCopy); with more
/// devices links carry them, as wide as measured over a link of the class.
CalibrationResult calibrate_gpu(DeviceRuntime& runtime, const CalibrationOptions& options,
                                const GpuProbeOptions& gpu = {});

}  // namespace ring::cuda
