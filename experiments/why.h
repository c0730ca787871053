// Stands in for sim/why.h until nothing includes it here any more.
#pragma once

#include "experiments/why_json.h"
#include "sim/why.h"
