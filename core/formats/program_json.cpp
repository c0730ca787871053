#include "core/formats/program_json.h"

#include <nlohmann/json.hpp>

#include "core/limits.h"

namespace ring {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json problem_to_json(const Problem& problem) {
  return {{"batch", problem.batch},           {"heads", problem.heads},
          {"kv_heads", problem.kv_heads},     {"head_dim", problem.head_dim},
          {"head_dim_v", problem.head_dim_v}, {"seq_len", problem.seq_len()},
          {"mask", problem.mask.text()},      {"dtype", name(problem.dtype)},
          {"pass", name(problem.pass)},       {"scale", problem.scale}};
}

Problem problem_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place,
                          {"batch", "heads", "kv_heads", "head_dim", "head_dim_v", "seq_len",
                           "mask", "dtype", "pass", "scale"});
  Problem problem;
  problem.batch = object.integer("batch");
  problem.heads = object.integer("heads");
  problem.kv_heads = object.integer("kv_heads");
  problem.head_dim = object.integer("head_dim");
  problem.head_dim_v = object.integer("head_dim_v");
  const int64_t seq_len = object.integer("seq_len");
  problem.mask =
      with_place(object.place("mask"), [&] { return Mask::parse(object.string("mask"), seq_len); });
  problem.dtype =
      with_place(object.place("dtype"), [&] { return parse_dtype(object.string("dtype")); });
  problem.pass =
      with_place(object.place("pass"), [&] { return parse_pass(object.string("pass")); });
  problem.scale = object.number("scale");
  with_place(place, [&] { validate(problem); });
  return problem;
}

ordered_json tuning_to_json(const Tuning& tuning) {
  return {{"strategy", tuning.strategy},
          {"ranks", tuning.ranks},
          {"partition", tuning.partition},
          {"block_tokens", tuning.block_tokens},
          {"blocks_per_message", tuning.blocks_per_message},
          {"pipeline_depth", tuning.pipeline_depth},
          {"lanes", tuning.lanes},
          {"deterministic", tuning.is_deterministic},
          {"backward", name(tuning.backward)},
          {"accumulation_steps", tuning.accumulation_steps},
          {"optimizer_gap_ps", tuning.optimizer_gap_ps}};
}

Tuning tuning_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(
      value, place,
      {"strategy", "ranks", "partition", "block_tokens", "blocks_per_message", "pipeline_depth",
       "lanes", "deterministic", "backward", "accumulation_steps", "optimizer_gap_ps"});
  Tuning tuning;
  tuning.strategy = object.string("strategy");
  tuning.ranks = static_cast<int>(object.integer("ranks", 1, kMostRanks));
  tuning.partition = object.string("partition");
  tuning.block_tokens = object.integer("block_tokens", 1);
  tuning.blocks_per_message = object.integer("blocks_per_message", 0);
  tuning.pipeline_depth = object.integer32("pipeline_depth", 1);
  tuning.lanes = object.integer32("lanes", 1);
  tuning.is_deterministic = object.boolean("deterministic");
  // Files from before there was a backward pass have none of these.
  if (object.has("backward")) {
    tuning.backward = with_place(object.place("backward"),
                                 [&] { return parse_backward_moves(object.string("backward")); });
  }
  if (object.has("accumulation_steps")) {
    tuning.accumulation_steps = object.integer32("accumulation_steps", 1);
  }
  if (object.has("optimizer_gap_ps")) {
    tuning.optimizer_gap_ps = object.integer("optimizer_gap_ps", 0);
  }
  return tuning;
}

}  // namespace ring
