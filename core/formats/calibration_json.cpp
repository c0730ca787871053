#include "core/formats/calibration_json.h"

#include <nlohmann/json.hpp>

namespace ring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

CalibrationSample sample_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place,
                          {"probe", "quantities", "labels", "seconds", "fitted_s", "held_out"});
  CalibrationSample sample;
  sample.probe = object.string("probe");
  for (const auto& item : object.map("quantities").items()) {
    sample.quantities[item.key()] =
        as_number(item.value(), object.place("quantities").at(item.key()));
  }
  for (const auto& item : object.map("labels").items()) {
    sample.labels[item.key()] = as_string(item.value(), object.place("labels").at(item.key()));
  }
  const json& seconds = object.array("seconds");
  for (size_t i = 0; i < seconds.size(); ++i) {
    sample.seconds.push_back(as_number(seconds[i], object.place("seconds").at(i)));
  }
  sample.fitted_s = object.number("fitted_s");
  sample.is_held_out = object.boolean("held_out");
  return sample;
}

FitQuality fit_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place,
                          {"fitted_samples", "held_out_samples", "fitted_median", "fitted_worst",
                           "held_out_median", "held_out_worst"});
  FitQuality fit;
  fit.fitted_samples = object.integer("fitted_samples", 0);
  fit.held_out_samples = object.integer("held_out_samples", 0);
  fit.fitted_median = object.amount("fitted_median");
  fit.fitted_worst = object.amount("fitted_worst");
  fit.held_out_median = object.amount("held_out_median");
  fit.held_out_worst = object.amount("held_out_worst");
  return fit;
}

FittedParameter parameter_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place, {"value", "low", "high"});
  return {object.number("value"), object.number("low"), object.number("high")};
}

}  // namespace

ordered_json calibration_to_json(const Calibration& calibration) {
  ordered_json fits = ordered_json::object();
  for (const auto& [probe, fit] : calibration.fits) {
    fits[probe] = {
        {"fitted_samples", fit.fitted_samples},   {"held_out_samples", fit.held_out_samples},
        {"fitted_median", fit.fitted_median},     {"fitted_worst", fit.fitted_worst},
        {"held_out_median", fit.held_out_median}, {"held_out_worst", fit.held_out_worst}};
  }
  ordered_json parameters = ordered_json::object();
  for (const auto& [name, parameter] : calibration.parameters) {
    parameters[name] = {
        {"value", parameter.value}, {"low", parameter.low}, {"high", parameter.high}};
  }
  ordered_json samples = ordered_json::array();
  for (const CalibrationSample& sample : calibration.samples) {
    samples.push_back({{"probe", sample.probe},
                       {"quantities", sample.quantities},
                       {"labels", sample.labels},
                       {"seconds", sample.seconds},
                       {"fitted_s", sample.fitted_s},
                       {"held_out", sample.is_held_out}});
  }
  return {{"fits", fits}, {"parameters", parameters}, {"samples", samples}};
}

Calibration calibration_from_json(const json& value, const JsonPlace& place) {
  const JsonObject object(value, place, {"fits", "parameters", "samples"});
  Calibration calibration;
  for (const auto& item : object.map("fits").items()) {
    calibration.fits[item.key()] = fit_from_json(item.value(), object.place("fits").at(item.key()));
  }
  for (const auto& item : object.map("parameters").items()) {
    calibration.parameters[item.key()] =
        parameter_from_json(item.value(), object.place("parameters").at(item.key()));
  }
  const json& samples = object.array("samples");
  for (size_t i = 0; i < samples.size(); ++i) {
    calibration.samples.push_back(sample_from_json(samples[i], object.place("samples").at(i)));
  }
  return calibration;
}

}  // namespace ring
