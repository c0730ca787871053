#include "kernels/cpu/memory.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace ring::cpu {
namespace {

#if defined(__x86_64__)
void copy_streaming(std::byte* to, const std::byte* from, int64_t bytes) {
  const auto head = std::min<int64_t>(bytes, -reinterpret_cast<intptr_t>(to) & 63);
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(from + i + 1024), _MM_HINT_NTA);
    const auto* in = reinterpret_cast<const __m128i*>(from + i);
    auto* out = reinterpret_cast<__m128i*>(to + i);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_stream_si128(out, a);
    _mm_stream_si128(out + 1, b);
    _mm_stream_si128(out + 2, c);
    _mm_stream_si128(out + 3, d);
  }
  _mm_sfence();  // orders the streaming stores before whatever announces the copy
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}
#endif

}  // namespace

void copy_bytes(void* to, const void* from, int64_t bytes, const CacheSizes& caches) {
  if (bytes == 0) return;
#if defined(__x86_64__)
  if (bytes > caches.l3_bytes / 2) {
    copy_streaming(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
    return;
  }
#endif
  (void)caches;
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace ring::cpu
