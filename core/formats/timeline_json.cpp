#include "core/formats/timeline_json.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace ring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::array kKinds{OpKind::kAttend, OpKind::kSend,     OpKind::kReceive, OpKind::kMerge,
                            OpKind::kCopy,   OpKind::kFinalize, OpKind::kCompute, OpKind::kBackward,
                            OpKind::kDelta,  OpKind::kAdd};
static_assert(kKinds.size() == kOpKinds);

constexpr std::array<std::string_view, 12> kColumns{"rank",  "index",     "kind",     "lane",
                                                    "step",  "peer",      "kv_shard", "bytes",
                                                    "flops", "posted_ps", "start_ps", "end_ps"};

constexpr std::array<std::string_view, 2> kOrigins{"measured", "predicted"};

/// One row of slices; places are made up only for messages, since there may be millions of rows.
class Row {
 public:
  Row(const json& value, const JsonPlace& slices, size_t number)
      : value_(value), slices_(slices), number_(number) {
    if (!value.is_array() || value.size() != kColumns.size()) {
      throw_usage(
          fmt::format("{}: a slice has {} values", slices.at(number).text(), kColumns.size()));
    }
  }

  int64_t integer(size_t column, int64_t low, int64_t high = kHighest64) const {
    const json& value = value_[column];
    if (value.is_number_integer() && !value.is_number_unsigned()) {
      const int64_t number = value.get<int64_t>();
      if (number >= low && number <= high) return number;
    }
    return as_integer(value, slices_.at(number_).at(column), low, high);
  }

  int32_t integer32(size_t column, int64_t low, int64_t high = INT32_MAX) const {
    return static_cast<int32_t>(integer(column, low, high));
  }

  OpKind kind(size_t column) const {
    const json& value = value_[column];
    if (value.is_string()) {
      const std::string& word = value.get_ref<const std::string&>();
      for (const OpKind kind : kKinds) {
        if (word == name(kind)) return kind;
      }
    }
    const JsonPlace place = slices_.at(number_).at(column);
    return parse_op_kind(as_string(value, place), place.text());
  }

 private:
  const json& value_;
  const JsonPlace& slices_;
  size_t number_;
};

Slice slice_from_json(const json& value, const JsonPlace& place, size_t number,
                      const Timeline& timeline) {
  const Row row(value, place, number);
  Slice slice;
  slice.op.rank = row.integer32(0, 0, timeline.ranks - 1);
  slice.op.index = row.integer(1, 0);
  slice.kind = row.kind(2);
  slice.lane = row.integer32(3, 0, timeline.lanes - 1);
  slice.step = row.integer32(4, 0);
  slice.peer = row.integer32(5, -1);
  slice.kv_shard = row.integer32(6, -1);
  slice.bytes = row.integer(7, 0);
  slice.flops = row.integer(8, 0);
  slice.posted_ps = row.integer(9, kLowest64);
  slice.start_ps = row.integer(10, kLowest64);
  slice.end_ps = row.integer(11, kLowest64);
  if (slice.posted_ps > slice.start_ps || slice.start_ps > slice.end_ps) {
    throw_usage(fmt::format("{}: the slice does not run from posted to start to end",
                            place.at(number).text()));
  }
  return slice;
}

void require_columns(const JsonObject& object) {
  const json& columns = object.array("columns");
  bool is_same = columns.size() == kColumns.size();
  for (size_t i = 0; is_same && i < kColumns.size(); ++i) is_same = columns[i] == kColumns[i];
  if (!is_same) {
    throw_usage(object.place("columns").text() + ": not the columns of this version",
                fmt::format("They are {}.", fmt::join(kColumns, ", ")));
  }
}

ordered_json rank_to_json(const RankMetrics& rank) {
  return {{"compute_ps", rank.compute_ps}, {"communication_ps", rank.communication_ps},
          {"waiting_ps", rank.waiting_ps}, {"exposed_ps", rank.exposed_ps},
          {"finish_ps", rank.finish_ps},   {"busy_share", rank.busy_share}};
}

RankMetrics rank_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(
      value, place,
      {"compute_ps", "communication_ps", "waiting_ps", "exposed_ps", "finish_ps", "busy_share"});
  RankMetrics rank;
  rank.compute_ps = object.integer("compute_ps", 0);
  rank.communication_ps = object.integer("communication_ps", 0);
  rank.waiting_ps = object.integer("waiting_ps", 0);
  rank.exposed_ps = object.integer("exposed_ps", 0);
  rank.finish_ps = object.integer("finish_ps");
  rank.busy_share = object.amount("busy_share");
  return rank;
}

/// A whole number where 64 bits hold it; a reader that takes numbers as doubles loses no more than
/// it must.
ordered_json flops_to_json(__int128 flops) {
  if (flops <= std::numeric_limits<Flops>::max()) return static_cast<Flops>(flops);
  return static_cast<double>(flops);
}

__int128 flops_from_json(const JsonObject& object) {
  if (object.at("flops").is_number_integer()) return object.integer("flops", 0);
  const double flops = object.amount("flops");
  if (flops > 1e36) {
    throw_usage(fmt::format("{}: {} is too large", object.place("flops").text(), flops));
  }
  return static_cast<__int128>(flops);
}

}  // namespace

OpKind parse_op_kind(std::string_view word, const std::string& where) {
  std::array<std::string_view, kKinds.size()> words;
  for (size_t i = 0; i < words.size(); ++i) words[i] = name(kKinds[i]);
  return kKinds[index_of_word(word, words, where)];
}

ordered_json timeline_to_json(const Timeline& timeline) {
  ordered_json slices = ordered_json::array();
  for (const Slice& slice : timeline.slices) {
    slices.push_back(ordered_json::array(
        {slice.op.rank, slice.op.index, name(slice.kind), slice.lane, slice.step, slice.peer,
         slice.kv_shard, slice.bytes, slice.flops, slice.posted_ps, slice.start_ps, slice.end_ps}));
  }
  return {{"origin", kOrigins[static_cast<size_t>(timeline.origin)]},
          {"name", timeline.name},
          {"ranks", timeline.ranks},
          {"lanes", timeline.lanes},
          {"complete", timeline.is_complete},
          {"columns", kColumns},
          {"slices", std::move(slices)}};
}

Timeline timeline_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place,
                          {"origin", "name", "ranks", "lanes", "complete", "columns", "slices"});
  Timeline timeline;
  timeline.origin = static_cast<TimelineOrigin>(
      index_of_word(object.string("origin"), kOrigins, object.place("origin").text()));
  timeline.name = object.string("name");
  timeline.ranks = object.integer32("ranks", 0);
  timeline.lanes = object.integer32("lanes", 0);
  timeline.is_complete = object.boolean("complete");
  require_columns(object);
  const json& slices = object.array("slices");
  const JsonPlace slices_place = object.place("slices");
  timeline.slices.reserve(slices.size());
  for (size_t i = 0; i < slices.size(); ++i) {
    timeline.slices.push_back(slice_from_json(slices[i], slices_place, i, timeline));
  }
  sort_slices(timeline);
  return timeline;
}

ordered_json metrics_to_json(const Metrics& metrics) {
  ordered_json ranks = ordered_json::array();
  for (const RankMetrics& rank : metrics.ranks) ranks.push_back(rank_to_json(rank));
  return {{"makespan_ps", metrics.makespan_ps},
          {"compute_ps", metrics.compute_ps},
          {"communication_ps", metrics.communication_ps},
          {"exposed_ps", metrics.exposed_ps},
          {"communication_ratio", metrics.communication_ratio},
          {"overlap", metrics.overlap},
          {"imbalance", metrics.imbalance},
          {"busiest_rank", metrics.busiest_rank},
          {"idlest_rank", metrics.idlest_rank},
          {"flops", flops_to_json(metrics.flops)},
          {"bytes_sent", metrics.bytes_sent},
          {"flops_per_s", metrics.flops_per_s},
          {"complete", metrics.is_complete},
          {"ranks", ranks}};
}

Metrics metrics_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(
      value, place,
      {"makespan_ps", "compute_ps", "communication_ps", "exposed_ps", "communication_ratio",
       "overlap", "imbalance", "busiest_rank", "idlest_rank", "flops", "bytes_sent", "flops_per_s",
       "complete", "ranks"});
  Metrics metrics;
  metrics.makespan_ps = object.integer("makespan_ps");
  metrics.compute_ps = object.integer("compute_ps", 0);
  metrics.communication_ps = object.integer("communication_ps", 0);
  metrics.exposed_ps = object.integer("exposed_ps", 0);
  metrics.communication_ratio = object.amount("communication_ratio");
  metrics.overlap = object.number("overlap");
  metrics.imbalance = object.number("imbalance");
  metrics.busiest_rank = object.integer32("busiest_rank");
  metrics.idlest_rank = object.integer32("idlest_rank");
  metrics.flops = flops_from_json(object);
  metrics.bytes_sent = object.integer("bytes_sent", 0);
  metrics.flops_per_s = object.amount("flops_per_s");
  metrics.is_complete = object.boolean("complete");
  const json& ranks = object.array("ranks");
  for (size_t i = 0; i < ranks.size(); ++i) {
    metrics.ranks.push_back(rank_from_json(ranks[i], object.place("ranks").at(i)));
  }
  return metrics;
}

}  // namespace ring
