#include "kernels/memory.h"

#include <sys/mman.h>

#include <cstring>

#include "core/error.h"

namespace ring {
namespace {

constexpr Bytes kPage = 4096;
constexpr Bytes kHugePage = 2 << 20;

Bytes round_up(Bytes bytes, Bytes to) { return (bytes + to - 1) / to * to; }

}  // namespace

Pages::Pages(Bytes bytes) : bytes_(bytes) {
  RING_ASSERT(bytes >= 0);
  if (bytes == 0) return;
  mapped_ = round_up(bytes, bytes >= kHugePage ? kHugePage : kPage);
  void* const address = mmap(nullptr, static_cast<size_t>(mapped_), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    throw Error(ErrorKind::kRunFailed,
                "no memory for " + format_bytes(bytes) + " of attention data",
                "use a shorter sequence, fewer heads, fewer ranks or a smaller depth");
  data_ = static_cast<std::byte*>(address);
  if (bytes >= kHugePage) madvise(address, static_cast<size_t>(mapped_), MADV_HUGEPAGE);
}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

Pages::~Pages() {
  if (mapped_ > 0) munmap(data_, static_cast<size_t>(mapped_));
}

Pages Pages::shared() const {
  Pages same;
  same.data_ = data_;
  return same;
}

void Pages::touch() const {
  if (mapped_ > 0) std::memset(data_, 0, static_cast<size_t>(mapped_));
}

}  // namespace ring
