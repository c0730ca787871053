#include "kernels/probe_programs.h"

#include <fmt/format.h>

#include "core/program_text.h"
#include "core/strategy.h"

namespace ring {
namespace {

struct AttendShape {
  Tokens tokens, block;
  int64_t heads, kv_heads, head_dim, head_dim_v;
  const char* mask;
  bool is_held_out;
};

// Rows from 128 to 2048, blocks from 32 to 1024, head dims from 32 to 128, one to four query heads
// a KV head, blocks that are seen in full, in part and not at all.
constexpr AttendShape kShapes[] = {
    {256, 32, 4, 4, 128, 128, "full", false},    {1024, 64, 4, 4, 128, 128, "causal", false},
    {512, 512, 4, 4, 128, 128, "full", false},   {2048, 256, 4, 1, 128, 128, "causal", false},
    {128, 128, 8, 8, 64, 64, "causal", false},   {1024, 128, 8, 2, 64, 64, "full", false},
    {2048, 64, 4, 4, 64, 64, "causal", false},   {1024, 1024, 4, 4, 64, 64, "causal", false},
    {256, 256, 8, 2, 32, 32, "full", false},     {1024, 64, 8, 8, 32, 32, "causal", false},
    {2048, 1024, 2, 2, 128, 128, "full", false}, {512, 128, 4, 4, 128, 64, "causal", false},
    {768, 96, 4, 2, 96, 96, "causal", true},     {640, 320, 6, 2, 128, 128, "causal", true},
    {1536, 192, 4, 4, 64, 64, "full", true},     {384, 48, 8, 4, 80, 80, "full", true},
};

// The backward pass takes 2.5 times the flops of the forward pass: fewer shapes, and smaller ones.
constexpr AttendShape kBackwardShapes[] = {
    {256, 64, 4, 4, 128, 128, "full", false},   {768, 256, 4, 4, 128, 128, "causal", false},
    {512, 512, 2, 2, 128, 128, "full", false},  {1024, 128, 4, 1, 64, 64, "causal", false},
    {128, 128, 8, 8, 64, 64, "causal", false},  {1024, 64, 2, 2, 64, 64, "full", false},
    {512, 64, 4, 4, 64, 64, "causal", false},   {1024, 1024, 2, 2, 64, 64, "causal", false},
    {256, 256, 8, 2, 32, 32, "full", false},    {1024, 64, 4, 4, 32, 32, "causal", false},
    {512, 128, 2, 2, 128, 64, "causal", false}, {512, 96, 4, 2, 96, 96, "causal", true},
    {640, 320, 3, 1, 128, 128, "causal", true}, {768, 192, 4, 4, 64, 64, "full", true},
};

// Few rows, so that setting the gradients of the keys to zero is a part that can be measured.
constexpr AttendShape kResettingShapes[] = {
    {512, 256, 2, 2, 128, 128, "window:16", false},
    {1024, 512, 2, 2, 64, 64, "window:16", false},
    {768, 384, 2, 2, 128, 64, "window:16", true},
};

constexpr DType kDTypes[] = {DType::kF32, DType::kBF16, DType::kF16};

Problem problem_of(const AttendShape& shape, DType dtype) {
  Problem problem;
  problem.heads = shape.heads;
  problem.kv_heads = shape.kv_heads;
  problem.head_dim = shape.head_dim;
  problem.head_dim_v = shape.head_dim_v;
  problem.dtype = dtype;
  problem.mask = Mask::parse(shape.mask, shape.tokens);
  return problem;
}

ProbeProgram attend_probe(const AttendShape& shape, DType dtype) {
  const Problem problem = problem_of(shape, dtype);
  Tuning tuning;
  tuning.ranks = 1;
  tuning.partition = "contiguous";
  tuning.block_tokens = shape.block;
  ProbeProgram probe;
  probe.kind = ProbeKind::kAttend;
  probe.is_held_out = shape.is_held_out;
  probe.label = fmt::format("attention, {} tokens in blocks of {}, head dim {}, {}", shape.tokens,
                            shape.block, shape.head_dim, name(dtype));
  probe.program = plan(problem, tuning);
  return probe;
}

/// Backward; on several ranks gradients travel and are added up.
ProbeProgram backward_probe(const AttendShape& shape, DType dtype, int ranks) {
  Problem problem = problem_of(shape, dtype);
  problem.pass = Pass::kBackward;
  Tuning tuning;
  tuning.ranks = ranks;
  tuning.block_tokens = shape.block;
  tuning.backward = BackwardMoves::kKeys;
  ProbeProgram probe;
  probe.kind = ranks > 1 ? ProbeKind::kGradients : ProbeKind::kAttend;
  probe.is_held_out = shape.is_held_out;
  probe.label = fmt::format("backward, {} tokens in blocks of {}, head dim {}, {}", shape.tokens,
                            shape.block, shape.head_dim, name(dtype));
  probe.program = plan(problem, tuning);
  return probe;
}

/// One rank whose gradients of keys go into a buffer that is set to zero first, as those of keys
/// that travel do, and are added at home in the end.
ProbeProgram resetting_probe(const AttendShape& shape, DType dtype) {
  ProbeProgram probe = backward_probe(shape, dtype, 1);
  probe.label = "resetting " + probe.label;
  RankProgram& rank = probe.program.rank_programs.front();
  rank.storage.gradient_buffers = 1;
  rank.storage.gradient_tokens = shape.tokens;
  OpWriter writer(probe.program.lanes);
  OpBatch batch;
  for (Op op : rank.ops) {
    if (op.kind == OpKind::kBackward) {
      op.state = 0;
      op.starts_state = true;
    }
    writer.append(op, {}, batch);
  }
  Op add;
  add.kind = OpKind::kAdd;
  add.payload = Payload::kKeyGradients;
  add.kv_shard = 0;
  add.kv_end = shape.tokens;
  add.source_state = 0;
  add.state = kHomeBuffer;
  add.bytes = 3 * probe.program.problem.key_gradient_bytes(shape.tokens);
  writer.append(add, {}, batch);
  rank.ops = std::move(batch.ops);
  rank.deps = std::move(batch.deps);
  return probe;
}

/// Many rows that see few keys: their Q and state are more than a cache holds.
ProbeProgram far_rows_probe(Tokens rows, int64_t heads, int64_t head_dim, DType dtype) {
  constexpr Tokens kKeys = 192;
  AttendShape shape{rows, 64, heads, heads, head_dim, head_dim, "full", false};
  Problem problem = problem_of(shape, dtype);
  problem.mask = Mask::from_segments(rows, {{0, rows, 0, 0, kKeys, 0}});
  Tuning tuning;
  tuning.ranks = 1;
  tuning.block_tokens = shape.block;
  ProbeProgram probe;
  probe.label = fmt::format("attention of {} rows beyond the cache, head dim {}, {}", rows,
                            head_dim, name(dtype));
  probe.program = plan(problem, tuning);
  return probe;
}

/// A state per block and merges of them.
ProbeProgram merge_probe(Tokens tokens, int64_t heads, int64_t head_dim) {
  const AttendShape shape{tokens, tokens / 4, heads, heads, head_dim, head_dim, "full", false};
  Tuning tuning;
  tuning.ranks = 1;
  tuning.block_tokens = shape.block;
  tuning.is_deterministic = true;
  ProbeProgram probe;
  probe.kind = ProbeKind::kAttend;
  probe.label = fmt::format("merges, {} tokens, head dim {}", tokens, head_dim);
  probe.program = plan(problem_of(shape, DType::kF32), tuning);
  return probe;
}

/// Every core has a document of its own, so that no key has to travel. One core gives the same work
/// alone.
ProbeProgram contention_probe(int cores, Tokens tokens, Tokens block, int64_t head_dim) {
  std::vector<int64_t> bounds;
  for (int core = 0; core <= cores; ++core) bounds.push_back(core * tokens);
  Problem problem;
  problem.heads = problem.kv_heads = 4;
  problem.head_dim = problem.head_dim_v = head_dim;
  problem.mask = Mask::documents(bounds, false);
  Tuning tuning;
  tuning.ranks = cores;
  tuning.partition = "contiguous";
  tuning.block_tokens = block;
  ProbeProgram probe;
  probe.kind = cores > 1 ? ProbeKind::kContention : ProbeKind::kAttend;
  probe.label = fmt::format("attention on all {} cores, blocks of {}", cores, block);
  probe.program = plan(problem, tuning);
  return probe;
}

/// `count` messages of `bytes` from rank 0 to rank 1, into `buffers` buffers in turn.
ProbeProgram transfer_probe(Bytes bytes, int count, int buffers) {
  std::string text = "ranks 2\nlanes 1\n";
  for (int i = 0; i < count; ++i) {
    const int buffer = i % buffers;
    text += fmt::format("r0 L0 send to=1 msg={} bytes={}\n", i, bytes);
    text += fmt::format("r1 L0 receive from=0 msg={} bytes={} buffer={}\n", i, bytes, buffer);
  }
  ProbeProgram probe;
  probe.kind = ProbeKind::kTransfer;
  probe.label = "messages of " + format_bytes(bytes);
  probe.program = parse_program(text);
  return probe;
}

/// Both ranks receive at the same time, as they do in a ring.
ProbeProgram both_ways_probe(Bytes bytes, int count, int buffers) {
  std::string text = "ranks 2\nlanes 2\n";
  for (int i = 0; i < count; ++i) {
    for (int rank = 0; rank < 2; ++rank) {
      text += fmt::format("r{} L0 send to={} msg={} bytes={}\n", rank, 1 - rank, i, bytes);
      text += fmt::format("r{} L1 receive from={} msg={} bytes={} buffer={}\n", rank, 1 - rank, i,
                          bytes, i % buffers);
    }
  }
  ProbeProgram probe;
  probe.kind = ProbeKind::kTransfer;
  probe.transfer = "transfer-all-cores";
  probe.label = "messages of " + format_bytes(bytes) + " both ways";
  probe.program = parse_program(text);
  return probe;
}

/// Rank 1 computes on its core all the time, as it does in a ring, while messages of a few bytes
/// come at moments at which its receiving lane sleeps.
ProbeProgram wakeup_probe() {
  std::string text = "ranks 2\nlanes 2\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("r0 L0 compute time=200us\n");
    text += fmt::format("r0 L0 send to=1 msg={} bytes=64\n", i);
    text += fmt::format("r1 L0 compute time=250us\n");
    text += fmt::format("r1 L1 receive from=0 msg={} bytes=64 buffer=0\n", i);
  }
  ProbeProgram probe;
  probe.kind = ProbeKind::kWakeup;
  probe.label = "waking of lanes";
  probe.program = parse_program(text);
  return probe;
}

}  // namespace

std::vector<ProbeProgram> probe_programs(int cores) {
  std::vector<ProbeProgram> probes;
  probes.push_back(wakeup_probe());
  for (const Bytes bytes : {Bytes{4} << 10, Bytes{32} << 10, Bytes{256} << 10, Bytes{2} << 20})
    probes.push_back(transfer_probe(bytes, 16, 8));
  probes.push_back(transfer_probe(Bytes{16} << 20, 4, 4));
  for (const DType dtype : kDTypes) {
    for (const AttendShape& shape : kShapes) probes.push_back(attend_probe(shape, dtype));
    probes.push_back(far_rows_probe(2048, 4, 128, dtype));
    probes.push_back(far_rows_probe(4096, 8, 64, dtype));
    probes.push_back(far_rows_probe(8192, 4, 128, dtype));
  }
  for (const DType dtype : kDTypes) {
    for (const AttendShape& shape : kBackwardShapes)
      probes.push_back(backward_probe(shape, dtype, 1));
    for (const AttendShape& shape : kResettingShapes)
      probes.push_back(resetting_probe(shape, dtype));
  }
  probes.push_back(merge_probe(256, 4, 64));
  probes.push_back(merge_probe(1024, 4, 128));
  probes.push_back(merge_probe(2048, 8, 128));
  if (cores > 1) {
    probes.push_back(backward_probe({512, 256, 4, 4, 128, 128, "full", false}, DType::kF32, 3));
    probes.push_back(backward_probe({1536, 512, 2, 2, 64, 64, "full", false}, DType::kF32, 3));
    for (const Bytes bytes : {Bytes{256} << 10, Bytes{2} << 20, Bytes{16} << 20})
      probes.push_back(both_ways_probe(bytes, 4, 4));
    probes.push_back(contention_probe(1, 1024, 64, 128));
    probes.push_back(contention_probe(1, 1024, 512, 128));
    probes.push_back(contention_probe(1, 1024, 256, 64));
    probes.push_back(contention_probe(cores, 1024, 64, 128));
    probes.push_back(contention_probe(cores, 1024, 512, 128));
    probes.push_back(contention_probe(cores, 1024, 256, 64));
  }
  return probes;
}

}  // namespace ring
