#include "experiments/report_json.h"

#include "core/formats/timeline_json.h"

namespace ring {

Json machine_choice_json(const MachineChoice& choice) {
  Json json;
  json["name"] = choice.machine.name;
  json["source"] = choice.source;
  json["is_calibrated"] = choice.machine.is_calibrated;
  return json;
}

Json prediction_json(const Prediction& prediction) {
  Json json;
  json["makespan_ps"] = prediction.result.makespan_ps;
  if (prediction.interval.coverage > 0) {
    json["interval"] = {{"low_ps", prediction.interval.low_ps},
                        {"high_ps", prediction.interval.high_ps},
                        {"coverage", prediction.interval.coverage}};
  }
  json["is_extrapolated"] = prediction.interval.is_extrapolated;
  json["extrapolated"] = prediction.extrapolated;
  json["notes"] = prediction.result.notes;
  json["metrics"] = metrics_to_json(prediction.result.metrics);
  return json;
}

Json blame_json(const Blame& blame) {
  Json json;
  json["makespan_ps"] = blame.makespan_ps;
  Json kinds = Json::object();
  for (int i = 0; i < kBlameKinds; ++i) {
    const auto kind = static_cast<BlameKind>(i);
    kinds[std::string(name(kind))] = blame.of(kind);
  }
  json["by_kind_ps"] = kinds;
  return json;
}

Json comparison_json(const Comparison& comparison) {
  Json json;
  json["measured_ps"] = comparison.measured.makespan_ps;
  json["predicted_ps"] = comparison.predicted.makespan_ps;
  json["makespan_error"] = comparison.makespan_error;
  Json kinds = Json::array();
  for (const KindSummary& kind : comparison.kinds) {
    kinds.push_back({{"kind", std::string(name(kind.kind))},
                     {"count", kind.count},
                     {"measured_ps", kind.measured_ps},
                     {"predicted_ps", kind.predicted_ps},
                     {"median_relative", kind.median_relative}});
  }
  json["kinds"] = kinds;
  json["only_measured"] = comparison.only_measured;
  json["only_predicted"] = comparison.only_predicted;
  return json;
}

Json verification_json(const Verification& verification) {
  Json json = {
      {"is_right", verification.is_right()}, {"rows", verification.rows},
      {"error", verification.error},         {"lse_error", verification.lse_error},
      {"tolerance", verification.tolerance}, {"worst_position", verification.worst_position}};
  if (verification.has_gradients) {
    json["dq_error"] = verification.dq_error;
    json["dk_error"] = verification.dk_error;
    json["dv_error"] = verification.dv_error;
  }
  return json;
}

}  // namespace ring
