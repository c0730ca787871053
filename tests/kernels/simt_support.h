// What the tests of the emulated device share.
#pragma once

#include <functional>
#include <string>

#include "kernels/simt/host_lane.h"

namespace ring::testing_support {

/// What the emulation finds wrong with a kernel; "no fault" when that is nothing.
inline std::string fault_of(const simt::LaunchOptions& options,
                            const std::function<void(simt::HostLane&)>& kernel) {
  try {
    simt::launch(options, kernel);
  } catch (const simt::SimtFault& fault) {
    return fault.what();
  }
  return "no fault";
}

}  // namespace ring::testing_support
