// Launches one compiled forward kernel on the host executor; included by its few instantiations.
#pragma once

#include "kernels/cuda/forward.h"
#include "kernels/cuda/hopper_forward.h"
#include "kernels/simt/host_lane.h"

namespace ring::test {

struct ForwardLaunch {
  cuda::ForwardParams params;
  int heads = 1;
  simt::LaunchOptions options;
};

/// The kernel for sm_90a.
template <class Config>
concept HasStages = requires {
  Config::kStages;
};

template <class Config>
simt::Counters launch_forward(ForwardLaunch launch) {
  if constexpr (HasStages<Config>) {
    launch.options.shape = cuda::hopper_shape<Config>(launch.params, launch.heads, 1);
    const cuda::HopperTensors tensors = cuda::hopper_tensors(
        launch.params, Config::kDimQk, launch.heads, 1, Config::kRows, Config::kKeys);
    const cuda::HopperParams params{simt::host_tensor_map(tensors.q),
                                    simt::host_tensor_map(tensors.k),
                                    simt::host_tensor_map(tensors.v), launch.params};
    return simt::launch(launch.options, [&](simt::HostLane& lane) {
      cuda::HopperForward<Config>::run(lane, params);
    });
  } else {
    launch.options.shape = cuda::forward_shape<Config>(launch.params, launch.heads, 1);
    return simt::launch(launch.options, [&](simt::HostLane& lane) {
      cuda::Forward<Config>::run(lane, launch.params);
    });
  }
}

// The kernels that the tests run, by head dims; small tiles show more edges in less time.
using simt::Bf16, simt::F16;
using F64Small = cuda::ForwardConfig<Bf16, 64, 64, 32, 16, 2>;
using F64Half = cuda::ForwardConfig<F16, 64, 64, 64, 32, 2>;
using F96 = cuda::ForwardConfig<Bf16, 96, 96, 64, 32, 4>;
using F128Small = cuda::ForwardConfig<Bf16, 128, 128, 32, 32, 2>;
using F128 = cuda::ForwardConfig<Bf16, 128, 128, 128, 64, 4>;
using F128Half = cuda::ForwardConfig<F16, 128, 128, 128, 64, 4>;
using F192 = cuda::ForwardConfig<Bf16, 192, 128, 128, 64, 8>;
using F256 = cuda::ForwardConfig<Bf16, 256, 256, 64, 64, 4>;
using H64Small = cuda::HopperConfig<Bf16, 64, 32>;
using H64Half = cuda::HopperConfig<F16, 64, 128>;
using H128 = cuda::HopperConfig<Bf16, 128, 128>;
using H128Half = cuda::HopperConfig<F16, 128, 64>;

extern template simt::Counters launch_forward<F64Small>(ForwardLaunch);
extern template simt::Counters launch_forward<F64Half>(ForwardLaunch);
extern template simt::Counters launch_forward<F96>(ForwardLaunch);
extern template simt::Counters launch_forward<F128Small>(ForwardLaunch);
extern template simt::Counters launch_forward<F128>(ForwardLaunch);
extern template simt::Counters launch_forward<F128Half>(ForwardLaunch);
extern template simt::Counters launch_forward<F192>(ForwardLaunch);
extern template simt::Counters launch_forward<F256>(ForwardLaunch);
extern template simt::Counters launch_forward<H64Small>(ForwardLaunch);
extern template simt::Counters launch_forward<H64Half>(ForwardLaunch);
extern template simt::Counters launch_forward<H128>(ForwardLaunch);
extern template simt::Counters launch_forward<H128Half>(ForwardLaunch);

}  // namespace ring::test
