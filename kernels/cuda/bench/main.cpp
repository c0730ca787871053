// ring_gpu_bench: times the forward and backward kernels on device 0 and prints a table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "core/fit.h"
#include "kernels/cuda/cuda_device.h"

namespace ring::cuda {
namespace {

constexpr int64_t kTokens = 16384;  ///< Batch times sequence, as published figures have it.
constexpr int64_t kWidth = 2048;    ///< Heads times head dim.
constexpr int kWarmups = 3, kRepeats = 11;

struct Shape {
  int64_t seq = 0;
  int dim = 0;
  bool is_causal = false;
};

/// Tensors of one shape on the device; values are 0 or 1, which no kernel takes faster or slower.
class Workload {
 public:
  Workload(DeviceRuntime& runtime, const Shape& shape) : runtime_(runtime), shape_(shape) {
    heads_ = static_cast<int>(kWidth / shape.dim);
    batch_ = static_cast<int>(std::max<int64_t>(kTokens / shape.seq, 1));
    q_ = tensor(0x3f80);
    k_ = tensor(0x3c00);
    v_ = tensor(0x3f80);
    d_out_ = tensor(0x3c00);
    const int64_t rows = shape.seq * heads_ * batch_;
    state_ = {floats(rows * shape.dim), floats(rows), floats(rows), shape.seq * heads_, shape.seq};
    lse_ = floats(rows);
    delta_ = floats(rows);
    for (float*& sum : sums_) sum = floats(rows * shape.dim);
    if (shape.is_causal) spans_ = causal_spans();
  }

  AttendCall forward() const {
    AttendCall call;
    ForwardParams& p = call.params;
    p.q = q_;
    p.k = k_;
    p.v = v_;
    p.state = state_;
    p.spans = spans_;
    p.q_rows = p.kv_rows = static_cast<int32_t>(shape_.seq);
    p.group_inverse = inverse_of(1);
    p.scale_log2e = static_cast<float>(std::numbers::log2e / std::sqrt(shape_.dim));
    p.largest_score = largest_score(p.scale_log2e);
    p.starts_state = 1;
    call.dim_qk = call.dim_v = shape_.dim;
    call.heads = heads_;
    call.batch = batch_;
    return call;
  }

  BackwardCall backward() const {
    BackwardCall call;
    BackwardParams& p = call.params;
    p.q = q_;
    p.k = k_;
    p.v = v_;
    p.d_out = d_out_;
    p.lse = lse_;
    p.delta = delta_;
    p.dq = sums_[0];
    p.dk = sums_[1];
    p.dv = sums_[2];
    p.row_batch_stride = p.key_batch_stride = shape_.seq * heads_;
    p.row_head_stride = p.key_head_stride = shape_.seq;
    p.spans = spans_;
    p.q_rows = p.kv_rows = static_cast<int32_t>(shape_.seq);
    p.scale = static_cast<float>(1 / std::sqrt(shape_.dim));
    call.dim_qk = call.dim_v = shape_.dim;
    call.heads = heads_;
    call.batch = batch_;
    return call;
  }

  /// 4 S^2 D H B forward, half of it when causal; backward 2.5 times as much.
  double forward_flops() const {
    const auto seq = static_cast<double>(shape_.seq);
    return 4 * seq * seq * shape_.dim * heads_ * batch_ * (shape_.is_causal ? 0.5 : 1);
  }

 private:
  ConstTensor tensor(uint16_t value) {
    const std::vector<uint16_t> host(static_cast<size_t>(shape_.seq * batch_ * kWidth), value);
    std::byte* const at = runtime_.allocate(0, static_cast<Bytes>(host.size() * 2));
    runtime_.upload(at, std::as_bytes(std::span(host)));
    return {reinterpret_cast<const uint16_t*>(at), shape_.seq * kWidth, kWidth, shape_.dim};
  }
  float* floats(int64_t count) { return reinterpret_cast<float*>(runtime_.allocate(0, count * 4)); }
  const KeyRange* causal_spans() {
    std::vector<KeyRange> spans;
    for (int32_t row = 0; row < shape_.seq; ++row) spans.push_back({0, row + 1});
    std::byte* const at = runtime_.allocate(0, static_cast<Bytes>(spans.size() * sizeof(KeyRange)));
    runtime_.upload(at, std::as_bytes(std::span(spans)));
    return reinterpret_cast<const KeyRange*>(at);
  }

  DeviceRuntime& runtime_;
  Shape shape_;
  int heads_ = 1, batch_ = 1;
  ConstTensor q_, k_, v_, d_out_;
  StateView state_;
  float *lse_ = nullptr, *delta_ = nullptr, *sums_[3] = {};
  const KeyRange* spans_ = nullptr;
};

double median_seconds(DeviceRuntime& runtime, int stream, const KernelCall& call) {
  const int begin = runtime.create_stamp(0), end = runtime.create_stamp(0);
  std::vector<double> seconds;
  for (int i = 0; i < kWarmups + kRepeats; ++i) {
    runtime.begin_clock();
    runtime.stamp(stream, begin);
    runtime.launch(stream, call);
    runtime.stamp(stream, end);
    runtime.synchronize();
    if (i >= kWarmups) seconds.push_back(runtime.stamp_s(end) - runtime.stamp_s(begin));
  }
  return median(seconds);
}

/// The kernels that this device takes.
std::vector<AttendKernels> kernels_here() {
  const auto runtime = make_cuda_runtime();
  constexpr int kDim = 128;
  const std::string best = runtime->attend_kernel(0, DType::kBF16, kDim, kDim);
  std::vector<AttendKernels> kernels = {AttendKernels::kMma};
  if (best.rfind("wgmma", 0) == 0) kernels.push_back(AttendKernels::kWgmma);
  if (runtime->versions().contains("cudnn")) kernels.push_back(AttendKernels::kCudnn);
  return kernels;
}

void print_row(const Shape& shape, const std::vector<AttendKernels>& kernels) {
  fmt::print("| {} | {} | {}", shape.dim, shape.is_causal ? "causal" : "full", shape.seq);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::unique_ptr<DeviceRuntime> runtime = make_cuda_runtime(std::nullopt, kernels[i]);
    const int stream = runtime->create_stream(0, false);
    const Workload load(*runtime, shape);
    // cuDNN takes blocks that all rows see; a masked one would be timed by the own kernels.
    if (kernels[i] == AttendKernels::kCudnn && shape.is_causal) {
      fmt::print(" | -");
    } else {
      const double forward_s = median_seconds(*runtime, stream, load.forward());
      fmt::print(" | {:.0f}", load.forward_flops() / forward_s * 1e-12);
    }
    if (i + 1 < kernels.size()) continue;
    const double backward_s = median_seconds(*runtime, stream, load.backward());
    fmt::print(" | {:.0f} |\n", 2.5 * load.forward_flops() / backward_s * 1e-12);
  }
  std::fflush(stdout);
}

int run() {
  const auto runtime = make_cuda_runtime();
  for (const auto& [name, text] : runtime->versions()) fmt::print("{}: {}\n", name, text);
  fmt::print("\nbf16, median of {} launches, TFLOP/s\n\n", kRepeats);
  const std::vector<AttendKernels> kernels = kernels_here();
  std::string head = "| head dim | mask | tokens", rule = "|---|---|---|---|";
  for (const AttendKernels it : kernels) {
    head += fmt::format(" | forward, {}", name(it));
    rule += "---|";
  }
  fmt::print("{} | backward |\n{}\n", head, rule);
  for (const int dim : {64, 128}) {
    for (const bool is_causal : {false, true}) {
      for (const int64_t seq : {1024, 4096, 16384, 32768}) {
        print_row({seq, dim, is_causal}, kernels);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace ring::cuda

int main() {
  try {
    return ring::cuda::run();
  } catch (const ring::Error& error) {
    fmt::print(stderr, "ring_gpu_bench: {}\n", error.what());
    return ring::exit_code(error.kind());
  }
}
