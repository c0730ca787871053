#include "core/dtype.h"

#include <string>

#include "core/error.h"

namespace ring {

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "fp32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "fp16";
  }
  return "?";
}

DType parse_dtype(std::string_view text) {
  if (text == "fp32" || text == "float32") return DType::kF32;
  if (text == "bf16" || text == "bfloat16") return DType::kBF16;
  if (text == "fp16" || text == "float16" || text == "half") return DType::kF16;
  throw_usage("dtype '" + std::string(text) + "' is not known", "allowed: fp32, bf16, fp16");
}

}  // namespace ring
