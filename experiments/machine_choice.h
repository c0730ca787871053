// Stands in for kernels/machine_choice.h until nothing includes it here any more.
#pragma once

#include "kernels/machine_choice.h"
