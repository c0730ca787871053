// Stands in for sim/prediction.h until nothing includes it here any more.
#pragma once

#include "sim/prediction.h"
