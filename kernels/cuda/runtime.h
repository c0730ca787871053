// DeviceRuntime: streams, events, copies, kernels and exchanges of devices, whoever provides them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "core/units.h"
#include "kernels/cuda/params.h"

namespace ring::cuda {

/// Kernels, with the size of their grid. The runtime picks the variant.
struct AttendCall {
  ForwardParams params;
  int dim_qk = 0, dim_v = 0, heads = 1, batch = 1;
  DType dtype = DType::kBF16;
};
struct FinalizeCall {
  FinalizeParams params;
  int heads = 1, batch = 1;
  DType dtype = DType::kBF16;
};
struct MergeCall {
  MergeStateParams params;
  int heads = 1, batch = 1;
};
struct ResetCall {
  ResetStateParams params;
  int heads = 1, batch = 1;
};
/// Makes rows of a state a partial result, with l = 1 and m the log-sum-exp in base 2.
struct NormalizeCall {
  ResetStateParams params;
  int heads = 1, batch = 1;
};
/// Gives a partial result that was received without it its l.
struct CompleteCall {
  ResetStateParams params;
  int heads = 1, batch = 1;
};
/// dQ, then dK and dV, of one block of keys.
struct BackwardCall {
  BackwardParams params;
  int dim_qk = 0, dim_v = 0, heads = 1, batch = 1;
  DType dtype = DType::kBF16;
};
struct DeltaCall {
  DeltaParams params;
  int heads = 1, batch = 1;
  DType dtype = DType::kBF16;
};
struct AddCall {
  AddParams params;
};
/// Zeroes.
struct ClearCall {
  std::byte* data = nullptr;
  Bytes bytes = 0;
};
/// Copies rows of so many bytes; pitches are the bytes from one row to the next.
struct CopyRowsCall {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Bytes to_pitch = 0, from_pitch = 0;
  Bytes bytes = 0;
  int64_t rows = 0;
};
/// Keeps one multiprocessor busy for a time; for programs without attention.
struct SpinCall {
  Picoseconds time_ps = 0;
};
using KernelCall =
    std::variant<AttendCall, FinalizeCall, MergeCall, ResetCall, NormalizeCall, CompleteCall,
                 BackwardCall, DeltaCall, AddCall, ClearCall, CopyRowsCall, SpinCall>;

/// One end of a transfer between ranks.
struct ExchangePart {
  bool is_send = false;
  int rank = 0;  ///< Of this end.
  int peer = 0;
  std::byte* data = nullptr;
  Bytes bytes = 0;
};

inline constexpr int kNotCaptured = -1;

/// What is known of a device.
struct DeviceFacts {
  std::string name;
  std::string bus_id;  ///< On the PCI bus, as NVML takes it; empty: none.
  int capability = 0;  ///< 80 for compute capability 8.0.
  int multiprocessors = 0;
  Bytes memory_bytes = 0;
  Bytes shared_bytes = 0;     ///< That one block may use.
  Bytes shared_sm_bytes = 0;  ///< Of a multiprocessor.
};

/// Calls come from one host thread. Streams do their commands in order and apart from each other;
/// all calls on streams return at once. Errors of earlier commands may be thrown by later calls, as
/// Error(kRunFailed) with the place of the call.
class DeviceRuntime {
 public:
  virtual ~DeviceRuntime() = default;

  virtual int device_count() const = 0;
  virtual DeviceFacts facts(int device) const = 0;
  /// What kind of way there is between two devices, in a word: "nvlink", "pcie", "host".
  virtual std::string link_class(int from, int to) const = 0;
  /// Driver, toolkit and library versions, for the context of profiles.
  virtual std::map<std::string, std::string> versions() const = 0;

  /// Throws Error(kUnavailable), saying what there is, when no kernel attends with these head dims
  /// on the device.
  virtual void require_attend(int device, DType dtype, int dim_qk, int dim_v) const = 0;
  /// The same for gradients.
  virtual void require_backward(int device, DType dtype, int dim_qk, int dim_v) const = 0;
  /// Which kernel attends with these head dims on the device, in words.
  virtual std::string attend_kernel(int device, DType dtype, int dim_qk, int dim_v) const = 0;

  /// Zeroed; lives as long as the runtime. Throws Error(kRunFailed) when there is not enough.
  virtual std::byte* allocate(int device, Bytes bytes) = 0;
  /// Wait for all that was called before.
  virtual void upload(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void download(std::span<std::byte> to, const std::byte* from) = 0;

  virtual int create_stream(int device, bool is_urgent) = 0;
  virtual int create_event(int device) = 0;
  virtual int create_stamp(int device) = 0;

  /// The event stands for everything called on the stream so far.
  virtual void record(int stream, int event) = 0;
  /// Commands called on the stream from now on wait for the event as it was last recorded; an event
  /// never recorded is not waited for.
  virtual void wait(int stream, int event) = 0;
  /// Takes the time when everything called on the stream so far is done.
  virtual void stamp(int stream, int stamp) = 0;
  virtual void copy(int stream, std::byte* to, const std::byte* from, Bytes bytes) = 0;
  virtual void launch(int stream, const KernelCall& call) = 0;
  /// Takes what launching the call in the stream will need, memory above all: while calls are
  /// captured none can be taken.
  virtual void prepare(int, const KernelCall&) {}
  /// Sends and receives of one group, each in the stream of its rank; `streams` by part.
  virtual void exchange(std::span<const ExchangePart> parts, std::span<const int> streams) = 0;

  /// Waits until all streams are empty.
  virtual void synchronize() = 0;
  /// Calls `enqueue` so that what it calls can be repeated by replay(); returns what to replay, or
  /// kNotCaptured where this runtime cannot, and nothing has been called then. `streams` are all
  /// that it uses.
  virtual int capture(std::span<const int> streams, const std::function<void()>& enqueue) = 0;
  virtual void replay(int captured) = 0;

  /// Begins the clock of stamps; all devices are idle.
  virtual void begin_clock() = 0;
  /// Seconds from begin_clock to a stamp that was taken.
  virtual double stamp_s(int stamp) = 0;
  /// How far the clocks of two devices may be apart in stamp_s.
  virtual double clock_uncertainty_s() const = 0;
};

}  // namespace ring::cuda
