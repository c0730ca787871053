// Scores: how far predictions of published rows are off, by file, by grade, and over all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/validation/published_rows.h"
#include "experiments/validation/row_case.h"
#include "experiments/validation/row_predict.h"

namespace ring {

struct ScoredRow {
  PublishedRow row;
  RowCase meaning;
  std::string skip;  ///< Why there is no prediction; empty when there is one.
  RowPrediction prediction;
  // In the row's unit.
  double predicted = 0, low = 0, high = 0;
  double error = 0;  ///< predicted / published - 1.
  bool is_covered = false;
};

/// Predicts one row; a row that cannot be predicted keeps the reason in `skip`.
ScoredRow score_row(const PublishedRow& row, MachineShelf& shelf);

struct Score {
  std::string name;  ///< File, grades, or "overall".
  int64_t rows = 0, predicted = 0;
  double median_abs_error = 0, mean_abs_error = 0, worst_abs_error = 0;
  double bias = 0;      ///< Median of the signed errors.
  double coverage = 0;  ///< Share of the published values inside their interval.
  /// Spearman's, of predicted and published times, within groups of one configuration under several
  /// strategies, ranks taken group by group. Empty without such a group.
  std::optional<double> rank_correlation;
  int64_t groups = 0;  ///< Configurations that were published under several strategies.
  std::optional<double> picked_best;  ///< Share of them whose best strategy was picked.
};

/// Of the rows that have a prediction. The pick is right when the published value of the strategy
/// that is predicted to be best is the best published one or within `kNoise` of it.
Score score(const std::string& name, const std::vector<const ScoredRow*>& rows);
inline constexpr double kPickNoise = 0.03;

struct Scores {
  std::vector<Score> files;
  std::vector<Score> grades;  ///< "A, A-" and "B+, B, B-" and the rest, where there are rows.
  Score overall;
};
Scores score_all(const std::vector<ScoredRow>& rows);

}  // namespace ring
