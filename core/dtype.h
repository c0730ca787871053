// DType: how an element of Q, K, V or the output is stored.
#pragma once

#include <cstdint>
#include <string_view>

namespace ring {

enum class DType { kF32, kBF16, kF16 };

/// Bytes of one stored element.
constexpr int64_t size_bytes(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

/// "fp32", "bf16" or "fp16".
std::string_view name(DType dtype);

/// Reads a name as printed by `name`; also "float32", "bfloat16", "float16", "half".
/// Throws Error(kUsage) naming the allowed words.
DType parse_dtype(std::string_view text);

}  // namespace ring
