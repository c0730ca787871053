// The collectives that sm_90 adds: barriers with phases, bulk tensor copies, warpgroup products.
#include "kernels/simt/collectives.h"

namespace ring::simt {
namespace {

template <class Argument>
Argument& argument_of(const Arrival& arrival) {
  return *static_cast<Argument*>(arrival.argument);
}

}  // namespace

void execute_arrive(Block& block, std::span<const Arrival> lanes) {
  for (const Arrival& lane : lanes) {
    const auto& argument = argument_of<ArriveArgument>(lane);
    if (!argument.takes_part) continue;
    block.barriers().arrive(lane.thread, argument.barrier, argument.announced_bytes);
  }
}

void execute_barrier_init(Block& block, std::span<const Arrival> lanes) {
  for (const Arrival& lane : lanes) {
    const auto& argument = argument_of<BarrierInitArgument>(lane);
    if (argument.takes_part)
      block.barriers().init(lane.thread, argument.barrier, argument.arrivals);
  }
}

void execute_barrier_fence(Block& block, std::span<const Arrival> lanes) {
  for (const Arrival& lane : lanes) block.barriers().fence_init(lane.thread);
}

void execute_tensor_copy(Block& block, std::span<const Arrival> lanes) {
  for (const Arrival& lane : lanes) {
    const auto& argument = argument_of<TensorCopyArgument>(lane);
    if (!argument.takes_part) continue;
    block.barriers().copy(lane.thread, argument.to, *argument.map, argument.place,
                          argument.barrier);
  }
}

void execute_wgmma(Block& block, std::span<const Arrival> lanes) { block.products().issue(lanes); }

void execute_wgmma_fence(Block& block, std::span<const Arrival> lanes) {
  block.products().fence(lanes[0].thread / kWarp);
}

void execute_wgmma_commit(Block& block, std::span<const Arrival> lanes) {
  block.products().commit(lanes[0].thread / kWarp);
}

void execute_wgmma_wait(Block& block, std::span<const Arrival> lanes) {
  block.products().wait(lanes, argument_of<WgmmaWaitArgument>(lanes[0]).pending);
}

void execute_nothing(Block&, std::span<const Arrival>) {}

}  // namespace ring::simt
