// Published rows: measurements that others published, one value a row, with their configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ring {

/// One row as its file has it; counts are empty where the file states none or no single number.
struct PublishedRow {
  std::string file;  ///< Without folder and ending.
  std::string id;
  std::string gpu, link, link_bandwidth, impl, algorithm, cp, dtype, causal, pass, metric, unit;
  std::string value_kind, note;
  std::optional<int64_t> gpus, nodes, tp, batch, seq, seq_per_gpu, heads, kv_heads, head_dim,
      layers;
  std::optional<double> value;  ///< Empty for "OOM", "failed" and the like.

  bool is_repeated = false;  ///< All its cells stand in a row above.

  std::string role = "judged";  ///< Or "calibration".
  std::string grade = "?";      ///< "A", "A-", "B+", "B", "B-", "C"; "?" where no split says.
};

/// Every row of every CSV file with the columns of a measurement of a distributed run (`algorithm`
/// and `cp` among them), by file name and place. `split.csv` of the folder, or of the library when
/// the folder has none, says which rows are calibration and what their grade is. Throws
/// Error(kUsage) for a folder without such a file, and as CsvTable.
std::vector<PublishedRow> read_published_rows(const std::string& folder);

}  // namespace ring
