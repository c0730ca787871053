#include "experiments/validation/row_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace ring {
namespace {

bool has(const std::string& text, std::string_view part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

/// The number behind a word: 4 of "ring 4 x ulysses 2" for "ulysses" is 2; 0 when there is none.
int64_t number_after(const std::string& text, std::string_view word) {
  size_t at = text.find(word);
  if (at == std::string::npos) return 0;
  at += word.size();
  while (at < text.size() && !std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
  int64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

double leading_double(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string gpu_of(const PublishedRow& row) {
  if (has(row.gpu, "H200")) return "h200-sxm";
  if (has(row.gpu, "H100")) return has(row.gpu, "500W") ? "h100-500w" : "h100-sxm";
  if (row.gpu.starts_with("H800")) return "h800-sxm";
  if (row.gpu.starts_with("A800")) return "a800-sxm";
  if (row.gpu.starts_with("A100")) return has(row.link, "PCIe") ? "a100-pcie" : "a100-sxm";
  if (row.gpu.starts_with("L20")) return "l20";
  return {};
}

/// The smallest machine of the library that holds the row's GPUs.
std::string machine_of(const std::string& gpu, int gpus, int nodes) {
  if (nodes > 1) {
    if (gpu == "a800-sxm" && gpus <= 32) return gpu + "-32-ib";
    if (gpu == "h100-500w" && gpus <= 32) return gpu + "-32-ib";
    if (gpu == "a100-sxm" || gpu == "h100-sxm") {
      return gpu + (nodes == 2 ? "-16-ib" : gpus <= 128 ? "-128-ib" : "");
    }
    return {};
  }
  if (gpu == "a100-pcie" && gpus <= 4) return gpu + "-4";
  return gpus <= 8 ? gpu + "-8" : std::string();
}

bool set_machine(const PublishedRow& row, RowCase& out) {
  const std::string gpu = gpu_of(row);
  if (gpu.empty()) {
    out.skip = "the GPU is not in the machine library: " + row.gpu;
    return false;
  }
  out.gpus = static_cast<int>(row.gpus.value_or(0));
  if (out.gpus == 0) {
    out.skip = "the number of GPUs is not stated";
    return false;
  }
  out.machine = machine_of(gpu, out.gpus, static_cast<int>(row.nodes.value_or(1)));
  if (out.machine.empty() || out.machine == gpu) {
    out.skip = fmt::format("no machine of the library has {} {}", out.gpus, row.gpu);
    return false;
  }
  if (has(row.gpu, "not stated")) out.assumptions.push_back("GPU taken as A100 SXM");
  if (has(row.link, "not stated")) out.assumptions.push_back("NVLink");
  if (row.nodes.value_or(1) > 1 && row.link_bandwidth.empty()) {
    out.assumptions.push_back(has(out.machine, "h100") ? "one NIC of 400 Gb/s per GPU"
                                                       : "one NIC of 200 Gb/s per GPU");
  }
  if (row.nodes.value_or(1) > 1 && has(row.link_bandwidth, "Gb/s")) {
    constexpr double kReached = 0.96;  // Of the line rate: 24 of 25 GB/s.
    out.nic_bytes_per_s = leading_double(row.link_bandwidth) * 1e9 / 8 * kReached;
  }
  return true;
}

void set_software(const PublishedRow& row, RowCase& out) {
  const std::string& algorithm = row.algorithm;
  if (has(row.impl, "FA3") || has(row.impl, "FlashAttention-3") || has(algorithm, "FA3")) {
    out.kernels = "fa3";
  } else if (has(row.impl, "flash-attn 2") || has(row.impl, "FlashAttention-2")) {
    out.kernels = "fa2";
  }
  if (has(algorithm, "Megatron") || has(algorithm, "ring_p2p") || has(algorithm, "hybrid_dcp")) {
    out.stack = "transformer-engine";
  } else if (has(algorithm, "Burst")) {
    out.stack = "burst";
  } else {
    out.stack = "ring-flash-attention";
  }
}

/// Ring and Ulysses degrees of a library whose degrees the row does not state.
void assume_mesh(int cp, RowCase& out) {
  out.ulysses = std::min(cp, cp > 8 ? 8 : 4);
  out.ring = cp / out.ulysses;
  out.assumptions.push_back(fmt::format("ring {} x Ulysses {}", out.ring, out.ulysses));
}

bool set_layout(const PublishedRow& row, RowCase& out) {
  const std::string& algorithm = row.algorithm;
  const auto cp = static_cast<int>(number_after(row.cp, ""));
  const auto gpus_of_node = static_cast<int>(out.gpus / row.nodes.value_or(1));
  if (has(algorithm, "varlen")) {
    out.skip = "the documents of the packed sequence are not in the row";
  } else if (has(algorithm, "magi_attn")) {
    out.skip = "kernels and collectives of its own, no ring";
  } else if (has(algorithm, "single GPU") || has(algorithm, "standalone")) {
    out.layout = Layout::kKernel;
  } else if (has(row.cp, "ulysses")) {
    out.ring = static_cast<int>(number_after(row.cp, "ring"));
    out.ulysses = static_cast<int>(number_after(row.cp, "ulysses"));
    out.all_to_all_calls = has(row.impl, "no_packed") ? 3 : 1;
  } else if (has(algorithm, "allgather") || has(algorithm, "all-gather")) {
    out.layout = Layout::kAllGather;
    out.ring = cp;
  } else if (algorithm == "ulysses" || has(algorithm, "DeepSpeed-Ulysses")) {
    out.ulysses = cp;
    out.all_to_all_calls = 3;
  } else if (has(algorithm, "head-first")) {
    out.ulysses = gpus_of_node;
    out.ring = cp / gpus_of_node;
    out.all_to_all_calls = 3;
  } else if (has(algorithm, "ring-first")) {
    out.ulysses = cp / gpus_of_node;
    out.ring = gpus_of_node;
    out.is_ulysses_across_nodes = true;
    out.all_to_all_calls = 3;
  } else if (has(algorithm, "double ring") || has(algorithm, "DoubleRing")) {
    out.layout = Layout::kDoubleRing;
    out.ring = cp;
    out.inner = std::min(gpus_of_node, cp);
  } else if (has(algorithm, "usp") || algorithm == "loongtrain") {
    assume_mesh(cp, out);
    out.all_to_all_calls = 3;
  } else if (has(algorithm, "ring") || has(algorithm, "hybrid_dcp") ||
             has(algorithm, "BurstAttention")) {
    out.ring = cp;
  } else {
    out.skip = "no strategy of ours: " + algorithm;
  }
  if (!out.skip.empty()) return false;
  if (out.layout == Layout::kKernel) {
    out.gpus = 1;
    return true;
  }
  if (out.ring < 1 || out.ulysses < 1 || out.ring * out.ulysses != out.gpus) {
    out.skip = fmt::format("{} GPUs are not ring {} x Ulysses {}", out.gpus, out.ring, out.ulysses);
  }
  return out.skip.empty();
}

void set_partition(const PublishedRow& row, bool is_causal, RowCase& out) {
  const std::string& algorithm = row.algorithm;
  const bool is_balanced_library = out.stack != "ring-flash-attention" || has(algorithm, "USP ") ||
                                   has(algorithm, "usp") || has(algorithm, "loongtrain") ||
                                   has(algorithm, "allgather") || algorithm == "ulysses" ||
                                   has(algorithm, "DoubleRing");
  if (has(algorithm, "strip")) {
    out.partition = "striped";
  } else if (has(algorithm, "zigzag")) {
    out.partition = "zigzag";
  } else if (has(algorithm, "basic") || has(algorithm, "contiguous")) {
    out.partition = "contiguous";
  } else if (is_balanced_library && is_causal) {
    out.partition = "zigzag";
  }
}

bool set_problem(const PublishedRow& row, RowCase& out) {
  const bool is_causal = row.causal.starts_with("true"), is_full = row.causal.starts_with("false");
  if (!is_causal && !is_full) {
    out.skip = "mask not stated";
  } else if (!row.seq || !row.heads || !row.head_dim) {
    out.skip = "length, heads or head dim not stated";
  } else if (!row.batch) {
    out.skip = "batch not stated";
  } else if (row.layers.value_or(1) > 1) {
    out.skip = "a whole model, of which attention is a part";
  }
  if (!out.skip.empty()) return false;
  Problem& problem = out.problem;
  problem.batch = *row.batch;
  problem.heads = *row.heads;
  problem.kv_heads = row.kv_heads.value_or(*row.heads);
  problem.head_dim = problem.head_dim_v = *row.head_dim;
  problem.dtype = has(row.dtype, "fp16") ? DType::kF16 : DType::kBF16;
  problem.mask = is_causal ? Mask::causal(*row.seq) : Mask::full(*row.seq);
  if (problem.heads % problem.kv_heads != 0 || problem.heads % out.ulysses != 0) {
    out.skip = fmt::format("{} heads over {} KV heads and Ulysses {}", problem.heads,
                           problem.kv_heads, out.ulysses);
    return false;
  }
  if (problem.kv_heads % out.ulysses != 0) out.assumptions.push_back("KV heads replicated");
  set_partition(row, is_causal, out);
  return true;
}

bool set_pass(const PublishedRow& row, RowCase& out) {
  if (row.pass == "fwd" || row.pass == "prefill fwd") {
    out.pass = TimedPass::kForward;
  } else if (row.pass == "bwd") {
    out.pass = TimedPass::kBackward;
  } else if (row.pass == "fwd+bwd") {
    out.pass = TimedPass::kBoth;
  } else {
    out.skip = "pass: " + row.pass;
  }
  return out.skip.empty();
}

bool set_unit(const PublishedRow& row, RowCase& out) {
  if (has(row.note, "contradict")) {
    out.skip = "its time and its throughput contradict each other";
    return false;
  }
  const std::string& unit = row.unit;
  if (has(row.metric, "memory") || has(row.metric, "mean CUDA time") || has(row.pass, "profile")) {
    out.skip = "not the time of a call: " + row.metric;
  } else if (unit == "iter/s") {
    out.quantity = Quantity::kPerSecond;
  } else if (unit == "TFLOP/s/GPU" || unit == "TFLOP/s") {
    out.quantity = Quantity::kFlopsPerGpu;
    out.unit_scale = 1e12;
  } else if (unit == "s") {
    out.unit_scale = 1;
  } else if (unit == "ms") {
    out.unit_scale = 1e-3;
  } else if (unit == "us") {
    out.unit_scale = 1e-6;
  } else {
    out.skip = "unit '" + unit + "'";
  }
  return out.skip.empty();
}

void count_flops(RowCase& out) {
  const Problem& problem = out.problem;
  const auto s = static_cast<double>(problem.seq_len());
  const double forward = 4 * s * s * static_cast<double>(problem.heads * problem.batch) *
                         static_cast<double>(problem.head_dim) /
                         (problem.mask.kind() == "causal" ? 2 : 1);
  const double factor = out.pass == TimedPass::kForward    ? 1
                        : out.pass == TimedPass::kBackward ? 2.5
                                                           : 3.5;
  out.counted_flops = factor * forward;
}

bool is_overlap_row(const PublishedRow& row) { return has(row.algorithm, "overlap condition"); }

/// Table 2 of the ring attention paper: the block from which a hop hides, and six of them.
RowCase overlap_case(const PublishedRow& row) {
  RowCase out;
  out.layout = Layout::kOverlap;
  out.quantity = Quantity::kTokens;
  out.unit_scale = 1e3;
  out.flops = leading_double(row.note) * 1e12;
  out.bytes_per_s = leading_double(row.link_bandwidth) * 1e9;
  out.blocks = has(row.metric, "6c") ? 6 : 1;
  if (out.flops <= 0 || out.bytes_per_s <= 0) out.skip = "FLOPS or bandwidth not stated";
  return out;
}

bool is_piece_row(const PublishedRow& row) {
  if (has(row.pass, "profile")) return false;
  return has(row.metric, "SendRecv") || has(row.metric, "All2All") ||
         has(row.metric, "attention op") || has(row.metric, "attention, whole") ||
         has(row.metric, "whole pass-Q") || has(row.metric, "ATTN");
}

/// Pieces of one attention layer of Llama 3 405B over nodes of 8 GPUs: TP over heads in the node,
/// the ring between nodes.
RowCase piece_case(const PublishedRow& row) {
  RowCase out;
  out.layout = Layout::kDecode;
  if (!set_machine(row, out)) return out;
  out.kernels = "fa3";
  out.nic_bytes_per_s = 0;  // The sweep of such NICs is what the machine has.
  out.unit_scale = row.unit == "us" ? 1e-6 : 1e-3;
  out.ring = static_cast<int>(std::max<int64_t>(1, number_after(row.cp, "")));
  const int tp = static_cast<int>(row.tp.value_or(8));
  const bool is_per_gpu = row.heads.value_or(0) <= 16;
  out.problem.heads = is_per_gpu ? row.heads.value_or(16) : *row.heads / tp;
  out.problem.kv_heads =
      is_per_gpu ? row.kv_heads.value_or(1) : std::max<int64_t>(1, row.kv_heads.value_or(8) / tp);
  out.problem.batch = row.batch.value_or(1);
  out.problem.head_dim = out.problem.head_dim_v = row.head_dim.value_or(128);
  out.problem.dtype = DType::kBF16;
  out.is_pass_q = !has(row.algorithm, "pass-KV");
  const int64_t cached = std::max(number_after(row.note, "cached "), number_after(row.note, "P="));
  int64_t fresh = std::max(number_after(row.note, "new "), number_after(row.note, "T="));
  // "miss rate 2.5%" states the share of new tokens.
  if (const size_t at = row.note.find("miss rate "); fresh == 0 && at != std::string::npos) {
    fresh = static_cast<int64_t>(leading_double(row.note.substr(at + 10)) / 100 *
                                 static_cast<double>(row.seq.value_or(0)));
  }
  if (row.pass == "decode") {
    out.context_tokens = number_after(row.note, "per CP rank ");
    if (out.context_tokens == 0) out.context_tokens = row.seq.value_or(0) / out.ring;
    // Each rank holds its share of the sequences' queries.
    out.problem.batch = std::max<int64_t>(1, out.problem.batch / out.ring);
  } else {
    const int64_t all = row.seq.value_or(cached + fresh);
    out.context_tokens = all / out.ring;
    out.query_rows = (fresh > 0 ? fresh : all) / out.ring;
  }
  out.problem.mask = Mask::full(std::max<int64_t>(1, out.context_tokens));
  using Piece = RowCase::Piece;
  out.piece = has(row.metric, "SendRecv")          ? Piece::kSendReceive
              : has(row.metric, "All2All")         ? Piece::kAllToAll
              : has(row.metric, "whole ring loop") ? Piece::kRingLoop
              : has(row.metric, "whole pass-Q")    ? Piece::kWhole
                                                   : Piece::kAttend;
  if (row.value.value_or(0) == 0) out.skip = "nothing to predict: 0";
  if (out.context_tokens == 0) out.skip = "context not stated";
  return out;
}

}  // namespace

RowCase interpret(const PublishedRow& row) {
  RowCase out;
  if (!row.value) {
    out.skip = "no number: " + row.metric;
  } else if (!(*row.value > 0) || !std::isfinite(*row.value)) {
    out.skip = fmt::format("the value is {}, which nothing measured can be", *row.value);
  } else if (row.is_repeated) {
    out.skip = "the same row stands above";
  } else if (has(row.value_kind, "third party") || has(row.value_kind, "authors model")) {
    out.skip = "not a measurement: " + row.value_kind;
  }
  if (!out.skip.empty()) return out;
  if (is_overlap_row(row)) return overlap_case(row);
  if (is_piece_row(row)) return piece_case(row);
  const bool is_complete =
      set_unit(row, out) && set_pass(row, out) && set_machine(row, out) && set_layout(row, out);
  if (!is_complete) return out;
  set_software(row, out);
  if (set_problem(row, out)) count_flops(out);
  return out;
}

}  // namespace ring
