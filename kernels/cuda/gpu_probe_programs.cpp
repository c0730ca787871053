#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/program_text.h"
#include "core/strategy.h"
#include "kernels/cuda/gpu_probes.h"

namespace ring::cuda {
namespace {

struct AttendShape {
  Tokens tokens, block;
  int64_t heads, kv_heads, head_dim;
  const char* mask;
  bool is_held_out;
};

// Blocks from one wave of small tiles to many of large ones, full and in part.
constexpr AttendShape kShapes[] = {
    {512, 128, 8, 8, 128, "full", false},     {1024, 512, 8, 8, 128, "causal", false},
    {2048, 1024, 16, 4, 128, "full", false},  {4096, 512, 16, 16, 128, "causal", false},
    {4096, 4096, 16, 4, 128, "full", false},  {8192, 2048, 32, 8, 128, "causal", false},
    {16384, 4096, 32, 8, 128, "full", false}, {16384, 2048, 16, 16, 128, "causal", false},
    {512, 256, 8, 8, 64, "full", false},      {2048, 512, 16, 16, 64, "causal", false},
    {4096, 2048, 32, 8, 64, "full", false},   {8192, 1024, 32, 32, 64, "causal", false},
    {16384, 8192, 32, 8, 64, "full", false},  {2048, 256, 32, 32, 128, "full", false},
    {3072, 768, 24, 8, 128, "causal", true},  {6144, 1536, 32, 8, 128, "full", true},
    {12288, 3072, 16, 4, 64, "causal", true}, {8192, 4096, 8, 8, 128, "causal", true},
};

// The backward pass takes 2.5 times the flops: fewer shapes.
constexpr AttendShape kBackwardShapes[] = {
    {512, 128, 8, 8, 128, "full", false},     {1024, 512, 8, 8, 128, "causal", false},
    {2048, 1024, 16, 4, 128, "full", false},  {4096, 1024, 16, 16, 128, "causal", false},
    {8192, 2048, 16, 16, 128, "full", false}, {1024, 256, 8, 8, 64, "full", false},
    {512, 256, 8, 8, 64, "causal", false},    {1024, 128, 16, 4, 128, "causal", false},
    {2048, 512, 16, 16, 64, "causal", false}, {4096, 2048, 32, 8, 64, "causal", false},
    {8192, 4096, 16, 16, 64, "full", false},  {2048, 256, 32, 32, 128, "full", false},
    {3072, 768, 24, 8, 128, "causal", true},  {6144, 3072, 16, 4, 64, "full", true},
};

Problem problem_of(const AttendShape& shape, DType dtype) {
  Problem problem;
  problem.heads = shape.heads;
  problem.kv_heads = shape.kv_heads;
  problem.head_dim = problem.head_dim_v = shape.head_dim;
  problem.dtype = dtype;
  problem.mask = Mask::parse(shape.mask, shape.tokens);
  return problem;
}

Tuning single_rank(Tokens block) {
  Tuning tuning;
  tuning.ranks = 1;
  tuning.partition = "contiguous";
  tuning.block_tokens = block;
  return tuning;
}

GpuProbe attend_probe(const AttendShape& shape, DType dtype) {
  GpuProbe probe;
  probe.probe.is_held_out = shape.is_held_out;
  probe.probe.label = fmt::format("attention, {} tokens in blocks of {}, head dim {}, {}",
                                  shape.tokens, shape.block, shape.head_dim, name(dtype));
  probe.probe.program = plan(problem_of(shape, dtype), single_rank(shape.block));
  probe.devices = {0};
  return probe;
}

/// Backward; on two ranks gradients travel and are added up.
GpuProbe backward_probe(const AttendShape& shape, DType dtype, std::vector<int> devices) {
  Problem problem = problem_of(shape, dtype);
  problem.pass = Pass::kBackward;
  Tuning tuning = single_rank(shape.block);
  tuning.ranks = static_cast<int>(devices.size());
  tuning.backward = BackwardMoves::kKeys;
  GpuProbe probe;
  if (devices.size() > 1) probe.probe.kind = ProbeKind::kGradients;
  probe.probe.is_held_out = shape.is_held_out;
  probe.probe.label = fmt::format("backward, {} tokens in blocks of {}, head dim {}, {}",
                                  shape.tokens, shape.block, shape.head_dim, name(dtype));
  probe.probe.program = plan(problem, tuning);
  probe.devices = std::move(devices);
  return probe;
}

GpuProbe merge_probe(Tokens tokens) {
  const AttendShape shape{tokens, tokens / 4, 16, 16, 128, "full", false};
  Tuning tuning = single_rank(shape.block);
  tuning.is_deterministic = true;
  GpuProbe probe;
  probe.probe.label = fmt::format("merges, {} tokens", tokens);
  probe.probe.program = plan(problem_of(shape, DType::kBF16), tuning);
  probe.devices = {0};
  return probe;
}

/// `count` messages from one rank to another, and ranks between that do nothing: with exchanges
/// rank r is on device r.
GpuProbe transfer_probe(Bytes bytes, int count, std::pair<int, int> ranks,
                        const std::string& transfer, std::vector<int> devices) {
  std::string text = fmt::format("ranks {}\nlanes 1\n", devices.size());
  for (int i = 0; i < count; ++i) {
    text += fmt::format("r{} L0 send to={} msg={} bytes={}\n", ranks.first, ranks.second, i, bytes);
    text += fmt::format("r{} L0 receive from={} msg={} bytes={} buffer={}\n", ranks.second,
                        ranks.first, i, bytes, i % 4);
  }
  GpuProbe probe;
  probe.probe.kind = ProbeKind::kTransfer;
  probe.probe.transfer = transfer;
  probe.probe.label = fmt::format("messages of {}, {}", format_bytes(bytes), transfer);
  probe.probe.program = parse_program(text);
  probe.devices = std::move(devices);
  return probe;
}

std::vector<int> devices_up_to(int last) {
  std::vector<int> devices(static_cast<size_t>(last) + 1);
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

/// Two ranks that attend to shards as wholes. With `travels` they pass them on meanwhile; without,
/// every shard is a document and nothing travels.
GpuProbe two_ranks(const AttendShape& shape, int64_t batch, bool travels,
                   const std::vector<int>& devices) {
  Problem problem = problem_of(shape, DType::kBF16);
  problem.batch = batch;
  if (!travels)
    problem.mask =
        Mask::parse(fmt::format("docs-full:0,{},{}", shape.tokens / 2, shape.tokens), shape.tokens);
  Tuning tuning;
  tuning.ranks = 2;
  tuning.partition = "contiguous";
  tuning.block_tokens = shape.block;
  GpuProbe probe;
  probe.probe.kind = ProbeKind::kOverlap;
  probe.probe.transfer = "";
  probe.probe.attend = "";
  probe.probe.label =
      fmt::format("two ranks, {} tokens, {}", shape.tokens, travels ? "a ring" : "nothing travels");
  probe.probe.program = plan(problem, tuning);
  probe.devices = devices;
  return probe;
}

/// Messages that are under way for as long as attention is: many heads, few rows. Against the same
/// without messages.
void add_disturbed_attention(const std::vector<int>& devices, Tokens largest_tokens,
                             std::vector<GpuProbe>& probes) {
  const Tokens tokens = std::min<Tokens>(1024, largest_tokens);
  const AttendShape shape{tokens, tokens / 2, 16, 16, 128, "full", false};
  constexpr int64_t kBatch = 16;
  const int64_t batch = largest_tokens < 16384 ? 1 : kBatch;
  for (const bool travels : {false, true}) {
    probes.push_back(two_ranks(shape, batch, travels, devices));
    probes.back().probe.attend = travels ? "attend-beside-transfer" : "attend-undisturbed";
  }
}

/// Attention that is under way for as long as messages are.
GpuProbe disturbed_messages(Tokens tokens, const std::vector<int>& devices) {
  GpuProbe probe = two_ranks({tokens, tokens / 2, 16, 16, 128, "full", false}, 1, true, devices);
  probe.probe.transfer = "transfer-beside-attention";
  return probe;
}

/// What a stream takes to go on after an event of another stream.
GpuProbe handover_probe() {
  std::string text = "ranks 1\nlanes 2\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("r0 L0 compute time=100us\nr0 L1 compute time=20us after=r0:{}\n", 2 * i);
  GpuProbe probe;
  probe.probe.kind = ProbeKind::kHandover;
  probe.probe.label = "one stream after another";
  probe.probe.program = parse_program(text);
  probe.devices = {0};
  return probe;
}

/// The two devices of a ring of two: those of the first link, or one for both.
std::vector<int> devices_of_two(const LinkClasses& links) {
  for (const auto& [name, pairs] : links) {
    if (std::find(pairs.begin(), pairs.end(), std::pair(0, 1)) != pairs.end()) return {0, 1};
  }
  return {0, 0};
}

void add_messages(const LinkClasses& links, const GpuProbeOptions& options,
                  std::vector<GpuProbe>& probes) {
  const auto sizes = {Bytes{4} << 10, Bytes{64} << 10, Bytes{512} << 10,
                      Bytes{4} << 20, Bytes{32} << 20, Bytes{128} << 20};
  constexpr int kMessages = 8;
  for (const Bytes bytes : sizes) {
    if (bytes > options.largest_tokens * 8192) continue;
    probes.push_back(transfer_probe(bytes, kMessages, {0, 1}, "transfer", {0, 0}));
    for (const auto& [name, pairs] : links) {
      probes.push_back(transfer_probe(bytes, kMessages, pairs.front(), "transfer-" + name,
                                      devices_up_to(pairs.front().second)));
      probes.back().carrier = options.carrier;
    }
  }
}

}  // namespace

std::vector<GpuProbe> gpu_probe_programs(const LinkClasses& links, const GpuProbeOptions& options) {
  const Tokens largest_tokens = options.largest_tokens;
  std::vector<GpuProbe> probes;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const AttendShape& shape : kShapes) {
      if (shape.tokens <= largest_tokens) probes.push_back(attend_probe(shape, dtype));
    }
    for (const AttendShape& shape : kBackwardShapes) {
      if (shape.tokens <= largest_tokens) probes.push_back(backward_probe(shape, dtype, {0}));
    }
  }
  for (const Tokens tokens : {Tokens{512}, Tokens{2048}, Tokens{8192}}) {
    if (tokens <= largest_tokens) probes.push_back(merge_probe(tokens));
  }
  probes.push_back(handover_probe());
  add_messages(links, options, probes);
  const size_t first_of_two = probes.size();
  const std::vector<int> devices = devices_of_two(links);
  for (const AttendShape& shape : {kBackwardShapes[1], kBackwardShapes[3]}) {
    if (shape.tokens <= largest_tokens)
      probes.push_back(backward_probe(shape, DType::kBF16, devices));
  }
  add_disturbed_attention(devices, largest_tokens, probes);
  for (const Tokens tokens : {Tokens{512}, Tokens{2048}, Tokens{16384}}) {
    if (tokens <= largest_tokens) probes.push_back(disturbed_messages(tokens, devices));
  }
  if (devices.front() == devices.back()) return probes;
  for (size_t i = first_of_two; i < probes.size(); ++i) probes[i].carrier = options.carrier;
  return probes;
}

}  // namespace ring::cuda
