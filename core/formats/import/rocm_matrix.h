// The matrices of rocm-smi: weights, hops and link types between AMD GPUs.
#pragma once

#include <string>
#include <vector>

#include "core/formats/import/topo_matrix.h"
#include "core/formats/import/topo_table.h"

namespace ring {

/// Throws Error(kUsage) with file:line when the matrices are not of the same GPUs.
TopoMatrix rocm_matrix(const std::vector<TextLine>& lines, const std::vector<TopoTable>& tables,
                       const std::string& file);

}  // namespace ring
