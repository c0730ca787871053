#include "kernels/bench/peer_matmul.h"

#ifdef RING_BENCH_ONEDNN

#include <fmt/format.h>

#include <compare>
#include <dnnl.hpp>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "core/error.h"

namespace ring::bench {
namespace {

using dnnl::memory;

struct MatmulShape {
  bool transpose_b = false;
  int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0;
  float beta = 0.0F;
  int64_t ldc = 0;

  auto operator<=>(const MatmulShape&) const = default;
};

struct Matmul {
  dnnl::matmul primitive;
  memory a, b, c;
  std::unordered_map<int, memory> arguments;  // the three above, as execute() takes them
};

class Matmuls {
 public:
  // Whether oneDNN has more than its plain loops for this shape.
  bool supports(const MatmulShape& shape) const {
    const dnnl::matmul::primitive_desc desc = describe(shape);
    return desc && !std::string_view(desc.impl_info_str()).starts_with("ref");
  }

  void run(const MatmulShape& shape, const void* a, const void* b, float* c) {
    Matmul& matmul = of(shape);
    matmul.a.set_data_handle(const_cast<void*>(a));
    matmul.b.set_data_handle(const_cast<void*>(b));
    matmul.c.set_data_handle(c);
    matmul.primitive.execute(stream_, matmul.arguments);
    stream_.wait();
  }

 private:
  // Empty where oneDNN cannot do it.
  dnnl::matmul::primitive_desc describe(const MatmulShape& s) const {
    using Dims = memory::dims;
    const memory::desc a({s.m, s.k}, memory::data_type::bf16, Dims{s.lda, 1});
    const memory::desc b({s.k, s.n}, memory::data_type::bf16,
                         s.transpose_b ? Dims{1, s.ldb} : Dims{s.ldb, 1});
    const memory::desc c({s.m, s.n}, memory::data_type::f32, Dims{s.ldc, 1});
    dnnl::primitive_attr attributes;
    if (s.beta != 0.0F) {
      dnnl::post_ops sum;
      sum.append_sum(s.beta);
      attributes.set_post_ops(sum);
    }
#if DNNL_VERSION_MAJOR >= 3
    return {engine_, a, b, c, attributes, true};
#else
    return {dnnl::matmul::desc(a, b, c), attributes, engine_, true};
#endif
  }

  Matmul& of(const MatmulShape& shape) {
    const auto found = made_.find(shape);
    if (found != made_.end()) return found->second;
    const dnnl::matmul::primitive_desc desc = describe(shape);
    if (!desc) {
      throw Error(ErrorKind::kUnavailable,
                  fmt::format("oneDNN has no bf16 matmul of {} x {} x {} on this CPU", shape.m,
                              shape.n, shape.k),
                  "leave its rows out with --only");
    }
    Matmul matmul{dnnl::matmul(desc),
                  unbound(desc.src_desc()),
                  unbound(desc.weights_desc()),
                  unbound(desc.dst_desc()),
                  {}};
    matmul.arguments = {
        {DNNL_ARG_SRC, matmul.a}, {DNNL_ARG_WEIGHTS, matmul.b}, {DNNL_ARG_DST, matmul.c}};
    return made_.emplace(shape, std::move(matmul)).first->second;
  }

  memory unbound(const memory::desc& desc) const { return {desc, engine_, DNNL_MEMORY_NONE}; }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<MatmulShape, Matmul> made_;
};

}  // namespace

Gemm onednn_bf16_gemm() {
  const auto matmuls = std::make_shared<Matmuls>();
  // The two products of a block of 256 queries and 512 keys, head dim 128.
  const MatmulShape scores{true, 256, 512, 128, 128, 128, 0.0F, 512};
  const MatmulShape values{false, 256, 128, 512, 512, 128, 1.0F, 128};
  if (!matmuls->supports(scores) || !matmuls->supports(values)) return {};
  return [matmuls](bool transpose_b, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
                   const void* b, int64_t ldb, float beta, float* c, int64_t ldc) {
    matmuls->run({transpose_b, m, n, k, lda, ldb, beta, ldc}, a, b, c);
  };
}

}  // namespace ring::bench

#else

namespace ring::bench {

Gemm onednn_bf16_gemm() { return {}; }

}  // namespace ring::bench

#endif
