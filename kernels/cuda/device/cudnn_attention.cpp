#include "kernels/cuda/device/cudnn_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numbers>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/cuda/device/check.h"
#include "kernels/cuda/device/library.h"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#if CUDNN_VERSION >= 91300
#define RING_HAS_CUDNN_HEADER
#endif
#endif

namespace ring::cuda {

#ifdef RING_HAS_CUDNN_HEADER

namespace {

constexpr size_t kOldestVersion = 91300;  // The first with attention as one operation.

struct Cudnn {
  Library library{"libcudnn.so.9"};
  decltype(&cudnnGetVersion) get_version =
      library.function<decltype(cudnnGetVersion)>("cudnnGetVersion");
  decltype(&cudnnCreate) create = library.function<decltype(cudnnCreate)>("cudnnCreate");
  decltype(&cudnnDestroy) destroy = library.function<decltype(cudnnDestroy)>("cudnnDestroy");
  decltype(&cudnnSetStream) set_stream =
      library.function<decltype(cudnnSetStream)>("cudnnSetStream");
  decltype(&cudnnGetErrorString) error_string =
      library.function<decltype(cudnnGetErrorString)>("cudnnGetErrorString");
  decltype(&cudnnBackendCreateDescriptor) create_descriptor =
      library.function<decltype(cudnnBackendCreateDescriptor)>("cudnnBackendCreateDescriptor");
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor =
      library.function<decltype(cudnnBackendDestroyDescriptor)>("cudnnBackendDestroyDescriptor");
  decltype(&cudnnBackendSetAttribute) set_attribute =
      library.function<decltype(cudnnBackendSetAttribute)>("cudnnBackendSetAttribute");
  decltype(&cudnnBackendGetAttribute) get_attribute =
      library.function<decltype(cudnnBackendGetAttribute)>("cudnnBackendGetAttribute");
  decltype(&cudnnBackendFinalize) finalize =
      library.function<decltype(cudnnBackendFinalize)>("cudnnBackendFinalize");
  decltype(&cudnnBackendExecute) execute =
      library.function<decltype(cudnnBackendExecute)>("cudnnBackendExecute");

  bool is_there() const {
    return library.is_there() && get_version != nullptr && get_version() >= kOldestVersion &&
           execute != nullptr;
  }
};

/// A descriptor of cuDNN's graph interface, which it gives back at the end.
class Descriptor {
 public:
  Descriptor(const Cudnn& cudnn, cudnnBackendDescriptorType_t type) : cudnn_(&cudnn) {
    check(cudnn.create_descriptor(type, &handle_), "cudnnBackendCreateDescriptor");
  }
  Descriptor(Descriptor&& other) noexcept
      : cudnn_(other.cudnn_), handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (handle_ != nullptr) cudnn_->destroy_descriptor(handle_);
  }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values,
           int64_t count = 1) {
    check(cudnn_->set_attribute(handle_, name, type, count, values), "cudnnBackendSetAttribute");
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value.handle_);
  }
  void finalize() { check(cudnn_->finalize(handle_), "cudnnBackendFinalize"); }
  cudnnStatus_t try_finalize() { return cudnn_->finalize(handle_); }
  cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  void check(cudnnStatus_t status, const char* what) const {
    if (status == CUDNN_STATUS_SUCCESS) return;
    throw Error(ErrorKind::kUnavailable,
                fmt::format("{} failed: {}", what, cudnn_->error_string(status)),
                "choose the own kernels");
  }

  const Cudnn* cudnn_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

enum Uid : int64_t { kQ = 1, kK, kV, kO, kStats, kScale, kUids = kScale };

/// What a plan depends on: sizes and strides, not addresses.
using Key = std::array<int64_t, 20>;

int64_t kv_heads_of(const AttendCall& call) {
  return (static_cast<int64_t>(call.heads - 1) * call.params.group_inverse >> 16) + 1;
}

Key key_of(const AttendCall& call) {
  const ForwardParams& p = call.params;
  Key key{call.batch, call.heads,  kv_heads_of(call), p.q_rows,
          p.kv_rows,  call.dim_qk, call.dim_v,        static_cast<int64_t>(call.dtype)};
  size_t at = 8;
  for (const ConstTensor* tensor : {&p.q, &p.k, &p.v}) {
    key[at++] = tensor->batch_stride;
    key[at++] = tensor->head_stride;
    key[at++] = tensor->token_stride;
  }
  return key;
}

Descriptor tensor_of(const Cudnn& cudnn, int64_t uid, cudnnDataType_t type,
                     std::array<int64_t, 4> extents, std::array<int64_t, 4> strides,
                     bool is_value = false) {
  Descriptor it(cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  constexpr int64_t kAlignment = 16;
  it.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, &uid);
  it.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, &type);
  it.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, extents.data(), 4);
  it.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), 4);
  it.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, &kAlignment);
  it.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, &is_value);
  it.finalize();
  return it;
}

Descriptor operation_of(const Cudnn& cudnn, const AttendCall& call) {
  const ForwardParams& p = call.params;
  const cudnnDataType_t type = call.dtype == DType::kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  const int64_t heads = call.heads, kv_heads = kv_heads_of(call), batch = call.batch;
  const int64_t rows = p.q_rows, keys = p.kv_rows, dim = call.dim_qk, dim_v = call.dim_v;
  const auto strides = [](const ConstTensor& t) -> std::array<int64_t, 4> {
    return {t.batch_stride, t.head_stride, t.token_stride, 1};
  };
  Descriptor op(cudnn, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC,
         tensor_of(cudnn, kQ, type, {batch, heads, rows, dim}, strides(p.q)));
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC,
         tensor_of(cudnn, kK, type, {batch, kv_heads, keys, dim}, strides(p.k)));
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC,
         tensor_of(cudnn, kV, type, {batch, kv_heads, keys, dim_v}, strides(p.v)));
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC,
         tensor_of(cudnn, kO, type, {batch, heads, rows, dim_v},
                   {heads * rows * dim_v, rows * dim_v, dim_v, 1}));
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC,
         tensor_of(cudnn, kStats, CUDNN_DATA_FLOAT, {batch, heads, rows, 1},
                   {heads * rows, rows, 1, 1}));
  op.set(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC,
         tensor_of(cudnn, kScale, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, true));
  op.finalize();
  return op;
}

}  // namespace

struct CudnnAttention::Impl {
  struct Plan {
    Descriptor plan;
    int64_t workspace_bytes = 0;
  };

  explicit Impl(cudaStream_t stream_in) : stream(stream_in) {
    if (!cudnn.is_there())
      throw Error(ErrorKind::kUnavailable, "no cuDNN of version 9.13 or later was found",
                  "choose the own kernels");
    const cudnnStatus_t status = cudnn.create(&handle);
    if (status != CUDNN_STATUS_SUCCESS)
      throw Error(ErrorKind::kRunFailed,
                  fmt::format("cudnnCreate failed: {}", cudnn.error_string(status)));
    cudnn.set_stream(handle, stream);
  }
  ~Impl() {
    for (void* block : {out, lse, workspace}) cudaFree(block);
    plans.clear();
    if (handle != nullptr) cudnn.destroy(handle);
  }

  Plan build(const AttendCall& call) const;
  static void grow(void*& block, int64_t& bytes, int64_t wanted);

  Cudnn cudnn;
  cudaStream_t stream;
  cudnnHandle_t handle = nullptr;
  std::map<Key, Plan> plans;
  void *out = nullptr, *lse = nullptr, *workspace = nullptr;
  int64_t out_bytes = 0, lse_bytes = 0, workspace_bytes = 0;
};

CudnnAttention::Impl::Plan CudnnAttention::Impl::build(const AttendCall& call) const {
  const Descriptor op = operation_of(cudnn, call);
  Descriptor graph(cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, &handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, op);
  graph.finalize();
  Descriptor heuristic(cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  constexpr cudnnBackendHeurMode_t kMode = CUDNN_HEUR_MODE_A;
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, &kMode);
  heuristic.finalize();
  constexpr int64_t kMostConfigs = 8;
  std::vector<Descriptor> configs;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < kMostConfigs; ++i) {
    configs.emplace_back(cudnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(configs.back().handle());
  }
  int64_t found = 0;
  cudnn.get_attribute(heuristic.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                      CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostConfigs, &found, handles.data());
  // The first that can be built is the best by cuDNN's own judgement.
  for (int64_t i = 0; i < std::min(found, kMostConfigs); ++i) {
    Plan built{Descriptor(cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)};
    built.plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, &handle);
    built.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configs[static_cast<size_t>(i)]);
    if (built.plan.try_finalize() != CUDNN_STATUS_SUCCESS) continue;
    int64_t count = 0;
    cudnn.get_attribute(built.plan.handle(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                        CUDNN_TYPE_INT64, 1, &count, &built.workspace_bytes);
    return built;
  }
  throw Error(ErrorKind::kUnavailable,
              fmt::format("cuDNN has no attention of head dims {} and {} in {}", call.dim_qk,
                          call.dim_v, name(call.dtype)),
              "choose the own kernels");
}

void CudnnAttention::Impl::grow(void*& block, int64_t& bytes, int64_t wanted) {
  if (wanted <= bytes) return;
  RING_CUDA_CHECK(cudaFree(block));
  RING_CUDA_CHECK(cudaMalloc(&block, static_cast<size_t>(wanted)));
  bytes = wanted;
}

std::string CudnnAttention::version() {
  const Cudnn cudnn;
  if (!cudnn.is_there()) return "";
  const size_t version = cudnn.get_version();
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void CudnnAttention::describe(const AttendCall& call) {
  const Cudnn cudnn;
  if (cudnn.is_there()) operation_of(cudnn, call);
}

CudnnAttention::CudnnAttention(cudaStream_t stream) : impl_(std::make_unique<Impl>(stream)) {}
CudnnAttention::~CudnnAttention() = default;

void CudnnAttention::prepare(const AttendCall& call) {
  Impl& impl = *impl_;
  auto plan = impl.plans.find(key_of(call));
  if (plan == impl.plans.end()) plan = impl.plans.emplace(key_of(call), impl.build(call)).first;
  const int64_t rows = int64_t{call.batch} * call.heads * call.params.q_rows;
  Impl::grow(impl.out, impl.out_bytes, rows * call.dim_v * size_bytes(call.dtype));
  Impl::grow(impl.lse, impl.lse_bytes, rows * int64_t{sizeof(float)});
  Impl::grow(impl.workspace, impl.workspace_bytes, plan->second.workspace_bytes);
}

void CudnnAttention::run(const AttendCall& call) {
  Impl& impl = *impl_;
  const ForwardParams& p = call.params;
  float scale = p.scale_log2e / static_cast<float>(std::numbers::log2e);
  const int64_t uids[kUids] = {kQ, kK, kV, kO, kStats, kScale};
  const void* const data[kUids] = {p.q.data, p.k.data, p.v.data, impl.out, impl.lse, &scale};
  Descriptor pack(impl.cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, uids, kUids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, data, kUids);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, &impl.workspace);
  pack.finalize();
  const cudnnStatus_t status =
      impl.cudnn.execute(impl.handle, impl.plans.at(key_of(call)).plan.handle(), pack.handle());
  if (status != CUDNN_STATUS_SUCCESS)
    throw Error(ErrorKind::kRunFailed,
                fmt::format("cudnnBackendExecute failed: {}", impl.cudnn.error_string(status)));
}

const uint16_t* CudnnAttention::out() const { return static_cast<const uint16_t*>(impl_->out); }
const float* CudnnAttention::lse() const { return static_cast<const float*>(impl_->lse); }

#else

struct CudnnAttention::Impl {};
std::string CudnnAttention::version() { return ""; }
void CudnnAttention::describe(const AttendCall&) {}
CudnnAttention::CudnnAttention(cudaStream_t) {
  throw Error(ErrorKind::kUnavailable, "ringscope was built without the headers of cuDNN 9.13",
              "choose the own kernels");
}
CudnnAttention::~CudnnAttention() = default;
void CudnnAttention::prepare(const AttendCall&) {}
void CudnnAttention::run(const AttendCall&) {}
const uint16_t* CudnnAttention::out() const { return nullptr; }
const float* CudnnAttention::lse() const { return nullptr; }

#endif

}  // namespace ring::cuda
