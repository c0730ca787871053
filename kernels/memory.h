// Pages: a block of memory whose pages are placed by the thread that first writes to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/units.h"

namespace ring {

/// Page-aligned, zero when first read. Large blocks ask for huge pages. Move-only.
class Pages {
 public:
  Pages() = default;
  /// Reserves without touching. Throws Error(kRunFailed) saying how much was asked for.
  explicit Pages(Bytes bytes);
  Pages(Pages&& other) noexcept { *this = std::move(other); }
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();

  std::byte* data() const { return data_; }
  Bytes bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  /// The same memory again, which must outlive it; it counts no bytes.
  Pages shared() const;
  /// Writes to every page, so that no later access faults.
  void touch() const;

 private:
  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
  Bytes mapped_ = 0;
};

}  // namespace ring
