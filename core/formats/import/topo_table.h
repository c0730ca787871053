// One matrix of a topology text, as words: the columns of its header and the cells of its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/import/text_lines.h"

namespace ring {

struct TopoRow {
  int64_t line = 0;
  std::string device;
  std::vector<std::string> cells;  ///< As many as the table has columns.
  std::vector<std::string> tail;   ///< What follows: affinities.
};

struct TopoTable {
  int64_t line = 0;   ///< Of the header.
  std::string title;  ///< The last line with words before the header.
  std::vector<std::string> columns;
  std::vector<std::string> tail;  ///< Words of the header after the devices.
  std::vector<TopoRow> rows;
};

/// All tables whose header begins with a GPU. Throws Error(kUsage) with file:line for rows with
/// fewer cells than columns.
std::vector<TopoTable> find_topo_tables(const std::vector<TextLine>& lines,
                                        const std::string& file);

}  // namespace ring
