// How a GpuExecutor puts its plan into the streams of the devices.
#include <tuple>

#include "kernels/cuda/gpu_executor_impl.h"

namespace ring::cuda {

void GpuExecutor::Impl::enqueue() {
  int waits = 0;
  for (const Command& command : plan.commands) {
    if (command.kind == CommandKind::kWait && waits++ == options.skipped_wait) continue;
    enqueue(command);
  }
}

void GpuExecutor::Impl::enqueue(const Command& command) {
  if (command.kind == CommandKind::kExchange) {
    exchange(command);
    return;
  }
  if (!is_local(rank_of_stream(command.stream))) return;
  const int stream = streams[static_cast<size_t>(command.stream)];
  switch (command.kind) {
    case CommandKind::kCompute:
      compute(command);
      break;
    case CommandKind::kCopy:
    case CommandKind::kStage:
    case CommandKind::kDeliver:
      transfer(command);
      break;
    case CommandKind::kRecord:
      runtime.record(stream, events[static_cast<size_t>(command.event)]);
      break;
    case CommandKind::kWait:
      runtime.wait(stream, events[static_cast<size_t>(command.event)]);
      break;
    case CommandKind::kExchange:
      break;
  }
}

void GpuExecutor::Impl::compute(const Command& command) {
  const int stream = streams[static_cast<size_t>(command.stream)];
  const OpStamps& at = stamps_of(command.op);
  runtime.stamp(stream, at.begin);
  launch_calls(stream, command.op);
  runtime.stamp(stream, at.end);
}

void GpuExecutor::Impl::launch_calls(int stream, OpId op) {
  for (const KernelCall& call : calls_of(op)) runtime.launch(stream, call);
}

void GpuExecutor::Impl::copy(int stream, const Pieces& to, const Pieces& from) {
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].bytes > 0) runtime.copy(stream, to[i].data, from[i].data, to[i].bytes);
  }
}

void GpuExecutor::Impl::transfer(const Command& command) {
  const int stream = streams[static_cast<size_t>(command.stream)];
  const Op& receive = program.op(command.op);
  const Op& send = program.op(command.send);
  const bool is_stage = command.kind == CommandKind::kStage;
  const OpStamps& at = stamps_of(is_stage ? command.send : command.op);
  const auto from = command.kind == CommandKind::kDeliver ? staged.at(command.send)
                                                          : local(command.send.rank).pieces(send);
  const auto to = is_stage ? staged.at(command.send) : local(command.op.rank).pieces(receive);
  runtime.stamp(stream, at.begin);
  copy(stream, to, from);
  if (!is_stage) launch_calls(stream, command.op);
  runtime.stamp(stream, at.end);
}

void GpuExecutor::Impl::exchange(const Command& command) {
  std::vector<ExchangePart> parts;
  std::vector<int> part_streams;
  std::vector<std::tuple<int, OpStamps, OpId>> timed;
  for (const ExchangeOp& pair : plan.exchanges[static_cast<size_t>(command.exchange)]) {
    for (const OpId id : {pair.send, pair.receive}) {
      if (!is_local(id.rank)) continue;
      const int stream = streams[static_cast<size_t>(exchange_stream(program, id.rank))];
      const Op& op = program.op(id);
      for (const Piece& piece : local(id.rank).pieces(op)) {
        if (piece.bytes == 0) continue;
        parts.push_back({op.kind == OpKind::kSend, id.rank, op.peer, piece.data, piece.bytes});
        part_streams.push_back(stream);
      }
      timed.emplace_back(stream, stamps_of(id), id);
    }
  }
  for (const auto& [stream, at, id] : timed) runtime.stamp(stream, at.begin);
  if (!parts.empty()) runtime.exchange(parts, part_streams);
  for (const auto& [stream, at, id] : timed) {
    launch_calls(stream, id);  // Of sends there are none.
    runtime.stamp(stream, at.end);
  }
}

}  // namespace ring::cuda
