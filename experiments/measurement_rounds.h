// MeasurementRounds: several programs measured in turn, while the cores are as fast as calibrated.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ring_program.h"
#include "kernels/data.h"
#include "kernels/executor.h"
#include "kernels/measurement.h"
#include "kernels/speed_check.h"

namespace ring {

struct RoundsOptions {
  int repeats = 8;         ///< Recorded runs of each program.
  int runs_per_round = 2;  ///< Of them, one after the other.
  double calibrated_check_s =
      0;                    ///< calibrated_speed_check_s(); 0: there is nothing to compare with.
  double tolerance = 0.06;  ///< Cores slower than calibrated by more make runs worth repeating.
  double patience_s = 30;   ///< Time spent on waiting and on runs made again, in all.
};

/// How steady the cores were while the programs were measured.
struct Steadiness {
  bool is_checked = false;   ///< False: the profile holds no speed check.
  int batches = 0;           ///< Runs of one program in one round.
  int made_again = 0;        ///< Batches thrown away, since the cores were slower at that time.
  int kept_slow = 0;         ///< Batches kept all the same: patience was at its end.
  double slowest_ratio = 1;  ///< Largest time of a check over the calibrated one.
};

/// "2 of 44 batches were made again: ..."; empty when all were steady.
std::string describe(const Steadiness& steadiness);

/// A slow spell of a shared machine lasts seconds, so it meets one round of a program and not all.
/// The same check that the calibration made says whether a round was worth anything.
class MeasurementRounds {
 public:
  MeasurementRounds(const RoundsOptions& options, const std::atomic<bool>& is_interrupted);

  /// `program` must outlive this.
  void add(const RingProgram& program, const DataSource& data);

  /// Called before every batch with the program's number and the share of the work that is done.
  using OnBatch = std::function<void(size_t program, double done)>;
  /// Ends early once interrupted; programs without all their runs are then not complete.
  void run(const OnBatch& on_batch);

  const Measurement& measurement(size_t program) const { return rows_[program]->measurement; }
  CpuExecutor& executor(size_t program) { return rows_[program]->executor; }
  const Steadiness& steadiness() const { return steadiness_; }

 private:
  struct Row {
    Row(const RingProgram& program, const DataSource& data, const ExecutorOptions& options)
        : executor(program, data, options) {}
    CpuExecutor executor;
    std::vector<Timeline> timelines;
    Measurement measurement;
  };

  bool run_batch(Row& row, int runs);
  bool run_once(Row& row, bool is_recorded);
  bool measure_batch(Row& row, int runs);
  double slowness();
  void wait_until_steady();

  RoundsOptions options_;
  const std::atomic<bool>& is_interrupted_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::unique_ptr<SpeedCheck> speed_check_;
  Steadiness steadiness_;
  double last_slowness_ = 1;
  double spent_s_ = 0;  ///< Of the patience.
};

}  // namespace ring
