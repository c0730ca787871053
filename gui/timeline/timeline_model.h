// TimelineModel: one or two runs made ready to be drawn; built once, off the GUI thread, and const.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/run_json.h"
#include "core/link_rates.h"
#include "core/memory_use.h"
#include "core/op_flows.h"
#include "core/ring_program.h"
#include "core/row_levels.h"
#include "core/slice_ref.h"
#include "core/timeline.h"
#include "core/timeline_pairs.h"

namespace ring::gui {

/// A timeline and the program that it is of.
struct RunData {
  std::string name;
  Timeline timeline;
  /// Null when it is not known, as for foreign traces: no critical path, no memory.
  std::shared_ptr<const RingProgram> program;
};

/// The measured or the predicted run of a run file; null when the file has none. The program is
/// planned anew or parsed; pass what an earlier call gave to share it.
std::shared_ptr<const RunData> run_data(const RunFile& run, TimelineOrigin origin,
                                        std::shared_ptr<const RingProgram> program = nullptr);

/// The bars of one lane of one run.
struct ModelRow {
  int rank = 0;
  int lane = 0;
  int overflow = 0;  ///< Of a lane whose slices overlap.
  std::string label;
  RowLevels bars;
  RowLevels critical;  ///< The parts of bars that lie on the critical path.
};

/// One run, ready to be drawn.
struct ModelRun {
  std::shared_ptr<const RunData> data;
  Picoseconds makespan_ps = 0;
  std::vector<ModelRow> rows;          ///< By rank, lane, overflow.
  std::vector<uint32_t> row_of_slice;  ///< By slice, index into `rows`.
  OpFlows flows;
  bool has_critical_path = false;
  uint32_t classes = 0;               ///< Bit set of the bar classes that occur.
  std::vector<LinkRate> links;        ///< By source.
  std::vector<RankMemoryUse> memory;  ///< By rank; empty when nothing is known.

  const Timeline& timeline() const { return data->timeline; }
  const Slice& slice(uint32_t index) const { return data->timeline.slices[index]; }
  const ModelRow& row_of(uint32_t index) const { return rows[row_of_slice[index]]; }
};

struct TimelineModel {
  std::optional<ModelRun> measured, predicted;
  int ranks = 0;                         ///< Of the run that has more.
  Picoseconds begin_ps = 0, end_ps = 0;  ///< Over both runs; begin is at most 0.
  double peak_bytes_per_s = 0;           ///< Of any link curve.
  double peak_memory_bytes = 0;          ///< Of any rank.
  TimelinePairs pairs;
  std::vector<StepCurve> drift;    ///< By rank; empty unless both runs are of one program.
  double peak_drift_ps = 0;        ///< Largest magnitude of any rank.
  std::vector<std::string> notes;  ///< What cannot be shown, and why, in sentences.

  const ModelRun* run(TimelineOrigin origin) const {
    const auto& run = origin == TimelineOrigin::kMeasured ? measured : predicted;
    return run ? &*run : nullptr;
  }
  /// Null for a slice that does not exist.
  const Slice* slice(SliceRef ref) const;
};

/// Takes about a second for a million slices, most of it for the critical path. Runs of different
/// programs are shown together, without differences; a note says so.
std::shared_ptr<const TimelineModel> build_timeline_model(std::shared_ptr<const RunData> measured,
                                                          std::shared_ptr<const RunData> predicted);

}  // namespace ring::gui
