#include "kernels/simt/phase_barriers.h"

#include <fmt/format.h>

#include "kernels/simt/block.h"

namespace ring::simt {

void PhaseBarriers::reset() {
  barriers_.clear();
  copies_.clear();
}

void PhaseBarriers::init(int thread, SharedAddress at, int arrivals) {
  const auto& where = block_.collective_place(thread);
  block_.require(thread, block_.shared().claim(thread, at), where);
  if (barriers_.contains(at)) block_.fail(thread, "begins a barrier twice", where);
  Barrier barrier;
  barrier.arrivals = barrier.missing = arrivals;
  barrier.number = static_cast<int>(barriers_.size());
  if (barrier.number >= SharedMemory::kCopiers)
    block_.fail(thread, "begins too many barriers", where);
  barrier.thread = thread;
  barrier.time = block_.shared().time_of(thread);
  barriers_[at] = barrier;
}

void PhaseBarriers::fence_init(int thread) {
  for (auto& [at, barrier] : barriers_) {
    if (barrier.thread == thread) barrier.is_fenced = true;
  }
}

PhaseBarriers::Barrier& PhaseBarriers::barrier_of(int thread, SharedAddress at) {
  const auto found = barriers_.find(at);
  const auto& where = block_.collective_place(thread);
  if (found == barriers_.end())
    block_.fail(thread, fmt::format("there is no barrier at shared address {}", at), where);
  Barrier& barrier = found->second;
  if (!block_.shared().is_ordered(thread, barrier.thread, barrier.time))
    block_.fail(thread, "uses a barrier that is not known to have begun", where);
  return barrier;
}

void PhaseBarriers::end_phase_if_complete(Barrier& barrier) {
  if (barrier.missing > 0 || barrier.missing_bytes != 0) return;
  barrier.missing = barrier.arrivals;
  ++barrier.phase;
  barrier.done = barrier.filling;
}

void PhaseBarriers::arrive(int thread, SharedAddress at, int announced_bytes) {
  Barrier& barrier = barrier_of(thread, at);
  if (barrier.missing == 0)
    block_.fail(thread, "arrives at a barrier at which all have arrived",
                block_.collective_place(thread));
  block_.shared().release(thread / kWarp, barrier.filling);
  --barrier.missing;
  barrier.missing_bytes += announced_bytes;
  end_phase_if_complete(barrier);
}

void PhaseBarriers::land(SharedAddress at) {
  std::vector<Copy> staying;
  for (Copy& copy : copies_) {
    if (copy.barrier != at) {
      staying.push_back(std::move(copy));
      continue;
    }
    Barrier& barrier = barriers_.at(at);
    const int copier = block_.shared().copier(barrier.number);
    for (const auto& [to, bytes] : copy.chunks) {
      block_.shared().land_bulk(copier, to, bytes.data());
      barrier.missing_bytes -= kCopyBytes;
    }
    block_.shared().release(copier, barrier.filling);
    end_phase_if_complete(barrier);
  }
  copies_ = std::move(staying);
}

bool PhaseBarriers::is_over(int thread, SharedAddress at, int parity) {
  Barrier& barrier = barrier_of(thread, at);
  const auto is_past = [&] { return barrier.phase % 2 != parity; };
  if (!is_past()) land(at);
  return is_past();
}

void PhaseBarriers::acquire(int warp, SharedAddress at) {
  block_.shared().acquire(warp, barriers_.at(at).done);
}

void PhaseBarriers::copy(int thread, SharedAddress to, const TensorMap& map,
                         const TensorPlace& place, SharedAddress at) {
  const auto where = block_.collective_place(thread);
  if (!barrier_of(thread, at).is_fenced)
    block_.fail(thread, "copies to a barrier whose beginning no fence has made known", where);
  const TensorShape shape = host_tensor_shape(map);
  const int row_bytes = shape.box_columns * 2;
  if (to % kSwizzleRowBytes != 0)
    block_.fail(thread, "copies a tensor to an address that is not a multiple of 128", where);
  if (row_bytes > kSwizzleRowBytes || row_bytes % kCopyBytes != 0)
    block_.fail(thread, "copies rows that the swizzle does not take", where);
  const bool is_swizzled = shape.is_swizzled && !block_.sabotage().ignores_tensor_swizzle;
  Copy copy;
  copy.barrier = at;
  const auto* const data = static_cast<const uint8_t*>(shape.data);
  const bool is_inside = place.head < shape.extents[2] && place.batch < shape.extents[3];
  for (int row = 0; row < shape.box_rows; ++row) {
    for (int offset = 0; offset < row_bytes; offset += kCopyBytes) {
      const auto linear = to + static_cast<SharedAddress>(row * row_bytes + offset);
      auto& [chunk_at, bytes] = copy.chunks.emplace_back();
      chunk_at = is_swizzled ? swizzled(linear) : linear;
      bytes.fill(0);
      block_.require(thread, block_.shared().begin_copy(thread, chunk_at), where);
      const int64_t column = place.column + offset / 2, own_row = place.row + row;
      if (!is_inside || own_row < 0 || own_row >= shape.extents[1] || column >= shape.extents[0])
        continue;
      const uint8_t* const from = data + column * 2 + own_row * shape.stride_bytes[1] +
                                  place.head * shape.stride_bytes[2] +
                                  place.batch * shape.stride_bytes[3];
      block_.check_global(thread, from, kCopyBytes, false, where);
      std::memcpy(bytes.data(), from, kCopyBytes);
      block_.counters().copy_bytes += kCopyBytes;
    }
  }
  copies_.push_back(std::move(copy));
}

}  // namespace ring::simt
