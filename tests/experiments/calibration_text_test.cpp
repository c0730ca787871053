// What calibrate says of its result: units of parameters, and whether the cores kept their speed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/calibration_run.h"
#include "kernels/speed_check.h"

namespace ring {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Calibration with_speed_checks(std::vector<double> seconds) {
  Calibration calibration;
  CalibrationSample sample;
  sample.probe = kSpeedProbe;
  sample.seconds = std::move(seconds);
  calibration.samples.push_back(sample);
  return calibration;
}

TEST(CalibrationText, BytesHaveUnitsAndNoSampleHasNoError) {
  CalibrationResult result;
  FittedParameter cache;
  cache.value = 2 << 20;
  cache.low = 1 << 20;
  cache.high = 3 << 20;
  result.calibration.parameters["attend.fp32.cache_bytes"] = cache;
  FitQuality fit;
  fit.fitted_samples = 5;
  fit.fitted_median = 0.25;
  result.calibration.fits["transfer"] = fit;
  const std::string text = calibration_text(result, Style{});
  EXPECT_THAT(text, HasSubstr("2.00 MiB  1.00 MiB .. 3.00 MiB"));
  EXPECT_THAT(text, HasSubstr("25.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("e+06")));
  EXPECT_THAT(text, HasSubstr("-      -\n"));
}

TEST(UnsteadyText, OneSlowCheckIsAMishapAndSlowSpellsAreNot) {
  EXPECT_THAT(unsteady_text({}), IsEmpty());
  std::vector<double> seconds(20, 4e-3);
  EXPECT_THAT(unsteady_text(with_speed_checks(seconds)), IsEmpty());
  seconds[7] = 12e-3;
  EXPECT_THAT(unsteady_text(with_speed_checks(seconds)), IsEmpty());
  for (size_t i = 10; i < 15; ++i) seconds[i] = 8e-3;
  EXPECT_THAT(unsteady_text(with_speed_checks(seconds)), HasSubstr("2.0 times"));
}

}  // namespace
}  // namespace ring
