// Stands in for core/paths.h until nothing includes it here any more.
#pragma once

#include "core/paths.h"
