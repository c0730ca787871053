#include "core/formats/run_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/json_object.h"
#include "core/formats/json_text.h"
#include "core/formats/program_json.h"
#include "core/formats/timeline_json.h"

namespace ring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

ordered_json program_to_json(const RunFile& run) {
  ordered_json program = ordered_json::object();
  if (run.identity) {
    program["problem"] = problem_to_json(run.identity->problem);
    program["tuning"] = tuning_to_json(run.identity->tuning);
  }
  if (!run.program_text.empty()) program["text"] = run.program_text;
  return program;
}

void program_from_json(const JsonObject& file, RunFile& run) {
  const JsonObject object(file.at("program"), file.place("program"), {"problem", "tuning", "text"});
  if (object.has("problem") || object.has("tuning")) {
    run.identity = ProgramIdentity{problem_from_json(object.at("problem"), object.place("problem")),
                                   tuning_from_json(object.at("tuning"), object.place("tuning"))};
  }
  if (object.has("text")) run.program_text = object.string("text");
}

ordered_json names_to_json(const OpNames& names) {
  return {{"names", names.names}, {"of_rank", names.of_rank}};
}

OpNames names_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place, {"names", "of_rank"});
  OpNames names;
  const json& texts = object.array("names");
  for (size_t i = 0; i < texts.size(); ++i) {
    names.names.push_back(as_string(texts[i], object.place("names").at(i)));
  }
  const json& ranks = object.array("of_rank");
  const JsonPlace ranks_place = object.place("of_rank");
  for (size_t r = 0; r < ranks.size(); ++r) {
    const json& ops = as_array(ranks[r], ranks_place.at(r));
    auto& of_rank = names.of_rank.emplace_back();
    for (size_t i = 0; i < ops.size(); ++i) {
      of_rank.push_back(static_cast<int32_t>(
          as_integer(ops[i], ranks_place.at(r).at(i), -1, std::ssize(names.names) - 1)));
    }
  }
  return names;
}

ordered_json interval_to_json(const PredictedInterval& interval) {
  return {{"low_ps", interval.low_ps},
          {"high_ps", interval.high_ps},
          {"coverage", interval.coverage},
          {"extrapolated", interval.is_extrapolated}};
}

PredictedInterval interval_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place, {"low_ps", "high_ps", "coverage", "extrapolated"});
  PredictedInterval interval;
  interval.low_ps = object.integer("low_ps");
  interval.high_ps = object.integer("high_ps", interval.low_ps);
  interval.coverage = object.amount("coverage");
  interval.is_extrapolated = object.boolean("extrapolated");
  return interval;
}

ordered_json counters_to_json(const std::vector<Counter>& counters) {
  ordered_json out = ordered_json::array();
  for (const Counter& counter : counters) {
    ordered_json points = ordered_json::array();
    for (const CounterPoint& point : counter.points)
      points.push_back(ordered_json::array({point.time_ps, point.value}));
    out.push_back({{"name", counter.name},
                   {"unit", counter.unit},
                   {"device", counter.device},
                   {"points", std::move(points)}});
  }
  return out;
}

Counter counter_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place, {"name", "unit", "device", "points"});
  Counter counter;
  counter.name = object.string("name");
  counter.unit = object.string("unit");
  counter.device = object.integer32("device", 0);
  const json& points = object.array("points");
  for (size_t i = 0; i < points.size(); ++i) {
    const JsonPlace at = object.place("points").at(i);
    const json& pair = as_array(points[i], at);
    if (pair.size() != 2) throw_usage(at.text() + ": a point is a time and a value");
    counter.points.push_back(
        {as_integer(pair[0], at.at(0), kLowest64), as_number(pair[1], at.at(1))});
  }
  return counter;
}

std::optional<Timeline> timeline_of(const JsonObject& file, std::string_view key,
                                    TimelineOrigin origin) {
  if (!file.has(key)) return std::nullopt;
  Timeline timeline = timeline_from_json(file.at(key), file.place(key));
  if (timeline.origin != origin) {
    throw_usage(fmt::format("{}: the origin is not \"{}\"", file.place(key).text(), key));
  }
  return timeline;
}

std::optional<Metrics> metrics_of(const JsonObject& file, std::string_view key,
                                  const std::optional<Timeline>& timeline) {
  if (!file.has(key)) return std::nullopt;
  Metrics metrics = metrics_from_json(file.at(key), file.place(key));
  if (timeline && (metrics.makespan_ps != timeline->makespan_ps() ||
                   metrics.is_complete != timeline->is_complete)) {
    throw_usage(
        fmt::format("{}: the metrics are not those of the timeline", file.place(key).text()),
        "The file was edited: makespan_ps or complete differs from what the slices say.");
  }
  return metrics;
}

void steps_from_json(const JsonObject& file, RunFile& run) {
  const json& steps = file.array("measured_steps_ps");
  for (size_t i = 0; i < steps.size(); ++i) {
    run.measured_steps_ps.push_back(as_integer(steps[i], file.place("measured_steps_ps").at(i), 0));
  }
}

}  // namespace

bool RunFile::is_complete() const {
  return (!measured || measured->is_complete) && (!predicted || predicted->is_complete);
}

std::string run_json(const RunFile& run) {
  ordered_json out;
  out["schema"] = kRunSchema;
  out["schema_version"] = kRunSchemaVersion;
  out["name"] = run.name;
  out["complete"] = run.is_complete();
  out["program"] = program_to_json(run);
  out["machine"] = run.machine;
  out["seed"] = run.seed;
  out["context"] = run.context;
  out["measured_steps_ps"] = run.measured_steps_ps;
  if (run.predicted_interval) {
    out["predicted_interval"] = interval_to_json(*run.predicted_interval);
  }
  if (run.measured_metrics) out["measured_metrics"] = metrics_to_json(*run.measured_metrics);
  if (run.predicted_metrics) out["predicted_metrics"] = metrics_to_json(*run.predicted_metrics);
  if (!run.op_names.empty()) out["op_names"] = names_to_json(run.op_names);
  if (run.measured_clock_uncertainty_ps > 0)
    out["measured_clock_uncertainty_ps"] = run.measured_clock_uncertainty_ps;
  if (!run.measured_counters.empty())
    out["measured_counters"] = counters_to_json(run.measured_counters);
  if (run.measured) out["measured"] = timeline_to_json(*run.measured);
  if (run.predicted) out["predicted"] = timeline_to_json(*run.predicted);
  return json_text(out, "run " + run.name);
}

RunFile parse_run(std::string_view text, const std::string& name) {
  const json document = parse_json(text, name);
  require_schema(document, name, kRunSchema, kRunSchemaVersion);
  const JsonObject object(
      document, {name, ""},
      {"schema", "schema_version", "name", "complete", "program", "machine", "seed", "context",
       "measured_steps_ps", "predicted_interval", "measured_metrics", "predicted_metrics",
       "op_names", "measured_clock_uncertainty_ps", "measured_counters", "measured", "predicted"});
  RunFile run;
  run.name = object.string("name");
  program_from_json(object, run);
  run.machine = object.string("machine");
  if (!object.at("seed").is_number_unsigned()) {
    throw_usage(object.place("seed").text() + ": expected a whole number that is not negative");
  }
  run.seed = object.at("seed").get<uint64_t>();
  for (const auto& item : object.map("context").items()) {
    run.context[item.key()] = as_string(item.value(), object.place("context").at(item.key()));
  }
  steps_from_json(object, run);
  if (object.has("op_names")) {
    run.op_names = names_from_json(object.at("op_names"), object.place("op_names"));
  }
  if (object.has("measured_clock_uncertainty_ps"))
    run.measured_clock_uncertainty_ps = object.integer("measured_clock_uncertainty_ps", 0);
  if (object.has("measured_counters")) {
    const json& counters = object.array("measured_counters");
    for (size_t i = 0; i < counters.size(); ++i)
      run.measured_counters.push_back(
          counter_from_json(counters[i], object.place("measured_counters").at(i)));
  }
  run.measured = timeline_of(object, "measured", TimelineOrigin::kMeasured);
  run.predicted = timeline_of(object, "predicted", TimelineOrigin::kPredicted);
  run.measured_metrics = metrics_of(object, "measured_metrics", run.measured);
  run.predicted_metrics = metrics_of(object, "predicted_metrics", run.predicted);
  if (object.has("predicted_interval")) {
    run.predicted_interval =
        interval_from_json(object.at("predicted_interval"), object.place("predicted_interval"));
  }
  if (object.boolean("complete") != run.is_complete()) {
    throw_usage(object.place("complete").text() + ": differs from what the timelines say");
  }
  return run;
}

RunFile read_run(const std::string& path) { return parse_run(read_file(path), path); }

void write_run(const std::string& path, const RunFile& run) { write_file(path, run_json(run)); }

}  // namespace ring
