#include "experiments/machine_library/link_costs.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <functional>
#include <vector>

#include "core/error.h"
#include "core/fit.h"
#include "core/formats/csv_table.h"
#include "core/formats/file_io.h"

namespace ring {
namespace {

using RowTest = std::function<bool(const CsvTable&, size_t)>;

double number(const CsvTable& table, size_t row, std::string_view column) {
  const std::string& text = table.at(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

/// Seconds of each message: printed times, or size over bus bandwidth where only that is printed.
std::vector<CalibrationSample> samples_of(const CsvTable& table, const std::string& probe,
                                          const RowTest& is_wanted) {
  std::vector<CalibrationSample> samples;
  for (size_t row = 0; row < table.rows(); ++row) {
    if (!is_wanted(table, row)) continue;
    const double bytes = number(table, row, "message_bytes"), value = number(table, row, "value");
    if (bytes <= 0 || value <= 0) continue;
    CalibrationSample sample;
    sample.probe = probe;
    sample.quantities["bytes"] = bytes;
    sample.labels["row"] = table.at(row, "id");
    sample.seconds = {table.at(row, "unit") == "us" ? value * 1e-6 : bytes / (value * 1e9)};
    samples.push_back(std::move(sample));
  }
  if (samples.size() < 3) throw_usage(table.name() + ": too few rows for the link " + probe);
  return samples;
}

double three_digits(double value) {
  const double scale = std::pow(10, 2 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

ByteCost fit_samples(std::vector<CalibrationSample> samples, Calibration& calibration) {
  std::vector<FitRow> rows;
  for (const CalibrationSample& sample : samples) {
    rows.push_back({{1, sample.quantities.at("bytes")}, sample.seconds.front()});
  }
  const LinearFit fit = fit_relative(rows);
  const ByteCostFit cost = byte_cost(fit);
  const std::string probe = samples.front().probe;
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].fitted_s = fit.predict(rows[i].features);
    calibration.samples.push_back(samples[i]);
  }
  calibration.parameters[probe + ".start_s"] = cost.start_s;
  calibration.parameters[probe + ".bytes_per_s"] = cost.bytes_per_s;
  calibration.fits[probe] = judge(fit, rows, {});
  return {three_digits(cost.cost.start_s), three_digits(cost.cost.bytes_per_s)};
}

/// The value of the one row that is wanted.
double single(const CsvTable& table, const std::string& what, const RowTest& is_wanted) {
  for (size_t row = 0; row < table.rows(); ++row) {
    if (is_wanted(table, row) && number(table, row, "value") > 0) {
      return number(table, row, "value");
    }
  }
  throw_usage(fmt::format("{}: no row of {}", table.name(), what));
}

bool is_sendrecv_of(const CsvTable& table, size_t row, std::string_view gpu) {
  return table.at(row, "gpu").starts_with(gpu) && table.at(row, "op").starts_with("sendrecv");
}

}  // namespace

LinkCosts fit_links(const std::string& folder) {
  const std::string path = folder + "/nccl-links.csv";
  const CsvTable table = CsvTable::parse(read_file(path), path);
  table.require({"id", "gpu", "nodes", "op", "message_bytes", "metric", "value", "unit"});
  LinkCosts costs;
  costs.a100_nvlink.cost = fit_samples(
      samples_of(table, "nvlink",
                 [](const CsvTable& t, size_t row) {
                   return is_sendrecv_of(t, row, "A100") && t.at(row, "unit") == "us" &&
                          // Printed 110.8 GB/s where twice the size has 188.6: warming up.
                          t.at(row, "message_bytes") != "134217728";
                 }),
      costs.calibration);
  costs.a100_nvlink.is_fitted = true;
  costs.a100_nvlink.source =
      "fitted: nccl-links, sendrecv of 8 A100 (256 MiB to 1 GiB) and the 8-byte message of A100s "
      "on NVLink; sizes between are interpolated";
  costs.ndr_nic.cost = fit_samples(samples_of(table, "nic",
                                              [](const CsvTable& t, size_t row) {
                                                const std::string& nodes = t.at(row, "nodes");
                                                return is_sendrecv_of(t, row, "B200") &&
                                                       (nodes == "2" || nodes == "4");
                                              }),
                                   costs.calibration);
  costs.ndr_nic.is_fitted = true;
  costs.ndr_nic.source =
      "fitted: nccl-links, sendrecv over 400 Gb/s InfiniBand, 2 and 4 nodes (B200 hosts), 1 KiB to "
      "256 MiB";
  costs.hopper_nvlink_bytes_per_s =
      1e9 * single(table, "ring all-gather of H200", [](const CsvTable& t, size_t row) {
        return t.at(row, "gpu") == "H200" && t.at(row, "op") == "all_gather Ring";
      });
  costs.roce_bytes_per_s =
      1e9 / 8 * single(table, "all-reduce over RoCE", [](const CsvTable& t, size_t row) {
        return t.at(row, "message_bytes") == "8589934592" && t.at(row, "gpu") == "H100 SXM";
      });
  costs.hdr_bytes_per_s = 1e9 * single(table, "a 200 Gb/s NIC", [](const CsvTable& t, size_t row) {
                            return t.at(row, "link") == "200 Gb/s NIC";
                          });
  return costs;
}

LinkCost nvlink_of(const LinkCosts& costs, const GpuSpec& gpu) {
  LinkCost link = costs.a100_nvlink;
  if (gpu.name == "a100-sxm") return link;
  link.is_fitted = false;
  const bool is_hopper = gpu.multiprocessors != gpu_spec("a100-sxm").multiprocessors;
  const GpuSpec& reference = gpu_spec(is_hopper ? "h200-sxm" : "a100-sxm");
  const double rate =
      is_hopper ? costs.hopper_nvlink_bytes_per_s : costs.a100_nvlink.cost.bytes_per_s;
  const double share = gpu.nvlink_bytes_per_s / reference.nvlink_bytes_per_s;
  link.cost.bytes_per_s = three_digits(rate * share);
  link.source =
      is_hopper ? "nccl-links: ring all-gather of 8 H200, start as on A100" : "as fitted on A100";
  if (share != 1) link.source += fmt::format("; derived: {:.3g} of its NVLink rate", share);
  return link;
}

}  // namespace ring
