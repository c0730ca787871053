// The parts of the JSON documents that several verbs print.
#pragma once

#include "core/blame.h"
#include "core/comparison.h"
#include "experiments/json.h"
#include "kernels/machine_choice.h"
#include "kernels/verify.h"
#include "sim/prediction.h"

namespace ring {

Json machine_choice_json(const MachineChoice& choice);
Json prediction_json(const Prediction& prediction);
Json blame_json(const Blame& blame);
Json comparison_json(const Comparison& comparison);
Json verification_json(const Verification& verification);

}  // namespace ring
