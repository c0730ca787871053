#include "experiments/validation/scores.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.h"
#include "core/fit.h"

namespace ring {
namespace {

/// All that says what was to be done, but not how.
std::string configuration_of(const PublishedRow& row) {
  const auto text = [](std::optional<int64_t> value) {
    return value ? std::to_string(*value) : std::string("?");
  };
  std::string key = row.file + "|" + row.gpu + "|" + row.impl + "|" + row.dtype + "|" + row.causal +
                    "|" + row.pass + "|" + row.metric + "|" + row.unit;
  for (const auto value :
       {row.gpus, row.nodes, row.batch, row.seq, row.heads, row.kv_heads, row.head_dim}) {
    key += "|" + text(value);
  }
  return key;
}

std::string strategy_of(const PublishedRow& row) { return row.algorithm + "|" + row.cp; }

/// A strategy of a configuration: medians over its repeats, in time so that less is better.
struct Candidate {
  std::vector<double> published_s, predicted_s;
};
using Group = std::map<std::string, Candidate>;

double published_seconds(const ScoredRow& scored) {
  const double value = *scored.row.value;
  switch (scored.meaning.quantity) {
    case Quantity::kSeconds:
    case Quantity::kTokens:
      return value;
    case Quantity::kPerSecond:
    case Quantity::kFlopsPerGpu:
      return 1 / value;
  }
  return value;
}

double predicted_seconds(const ScoredRow& scored) {
  switch (scored.meaning.quantity) {
    case Quantity::kSeconds:
    case Quantity::kTokens:
      return scored.predicted;
    case Quantity::kPerSecond:
    case Quantity::kFlopsPerGpu:
      return 1 / scored.predicted;
  }
  return scored.predicted;
}

std::vector<Group> groups_of(const std::vector<const ScoredRow*>& rows) {
  std::map<std::string, Group> by_configuration;
  for (const ScoredRow* scored : rows) {
    const Layout layout = scored->meaning.layout;
    if (layout == Layout::kKernel || layout == Layout::kDecode || layout == Layout::kOverlap) {
      continue;
    }
    Candidate& candidate =
        by_configuration[configuration_of(scored->row)][strategy_of(scored->row)];
    candidate.published_s.push_back(published_seconds(*scored));
    candidate.predicted_s.push_back(predicted_seconds(*scored));
  }
  std::vector<Group> groups;
  for (auto& [key, group] : by_configuration) {
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  return groups;
}

bool is_picked(const Group& group) {
  double best_published = 0, best_predicted = 0, published_of_pick = 0;
  for (const auto& [strategy, candidate] : group) {
    const double published = median(candidate.published_s);
    const double predicted = median(candidate.predicted_s);
    if (best_published == 0 || published < best_published) best_published = published;
    if (best_predicted == 0 || predicted < best_predicted) {
      best_predicted = predicted;
      published_of_pick = published;
    }
  }
  return published_of_pick <= best_published * (1 + kPickNoise);
}

/// Ranks from 0, means for equals.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    double below = 0, equal = 0;
    for (const double other : values) {
      below += other < values[i] ? 1 : 0;
      equal += other == values[i] ? 1 : 0;
    }
    ranks[i] = below + (equal - 1) / 2;
  }
  return ranks;
}

/// Pearson's correlation of ranks, centred within each group.
std::optional<double> rank_correlation(const std::vector<Group>& groups) {
  double xy = 0, xx = 0, yy = 0;
  for (const Group& group : groups) {
    std::vector<double> published, predicted;
    for (const auto& [strategy, candidate] : group) {
      published.push_back(median(candidate.published_s));
      predicted.push_back(median(candidate.predicted_s));
    }
    const std::vector<double> x = ranks_of(published), y = ranks_of(predicted);
    const double middle = (static_cast<double>(x.size()) - 1) / 2;
    for (size_t i = 0; i < x.size(); ++i) {
      xy += (x[i] - middle) * (y[i] - middle);
      xx += (x[i] - middle) * (x[i] - middle);
      yy += (y[i] - middle) * (y[i] - middle);
    }
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

std::string grade_band(const std::string& grade) {
  if (grade.starts_with("A")) return "A, A-";
  if (grade.starts_with("B")) return "B+, B, B-";
  return "C or not graded";
}

}  // namespace

ScoredRow score_row(const PublishedRow& row, MachineShelf& shelf) {
  ScoredRow scored;
  scored.row = row;
  scored.meaning = interpret(row);
  scored.skip = scored.meaning.skip;
  if (!scored.skip.empty()) return scored;
  try {
    scored.prediction = predict_row(scored.meaning, shelf);
  } catch (const Error& error) {
    scored.skip = error.what();
    return scored;
  }
  const auto unit = [&](double seconds) { return in_unit_of(scored.meaning, seconds); };
  scored.predicted = unit(scored.prediction.seconds);
  scored.low = std::min(unit(scored.prediction.low_s), unit(scored.prediction.high_s));
  scored.high = std::max(unit(scored.prediction.low_s), unit(scored.prediction.high_s));
  scored.error = scored.predicted / *row.value - 1;
  // Printed digits are rounded: a value within half a unit of the last one counts as hit.
  scored.is_covered = *row.value >= scored.low * 0.99 && *row.value <= scored.high * 1.01;
  return scored;
}

Score score(const std::string& name, const std::vector<const ScoredRow*>& all) {
  Score result;
  result.name = name;
  result.rows = static_cast<int64_t>(all.size());
  std::vector<const ScoredRow*> rows;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rows),
               [](const ScoredRow* row) { return row->skip.empty(); });
  result.predicted = static_cast<int64_t>(rows.size());
  if (rows.empty()) return result;
  std::vector<double> errors, magnitudes;
  double covered = 0;
  for (const ScoredRow* row : rows) {
    errors.push_back(row->error);
    magnitudes.push_back(std::abs(row->error));
    covered += row->is_covered ? 1 : 0;
  }
  const auto count = static_cast<double>(rows.size());
  result.median_abs_error = median(magnitudes);
  result.mean_abs_error = std::accumulate(magnitudes.begin(), magnitudes.end(), 0.0) / count;
  result.worst_abs_error = *std::max_element(magnitudes.begin(), magnitudes.end());
  result.bias = median(errors);
  result.coverage = covered / count;
  const std::vector<Group> groups = groups_of(rows);
  result.groups = static_cast<int64_t>(groups.size());
  result.rank_correlation = rank_correlation(groups);
  if (!groups.empty()) {
    const auto picked = std::count_if(groups.begin(), groups.end(), is_picked);
    result.picked_best = static_cast<double>(picked) / static_cast<double>(groups.size());
  }
  return result;
}

Scores score_all(const std::vector<ScoredRow>& rows) {
  std::map<std::string, std::vector<const ScoredRow*>> by_file, by_grade;
  std::vector<const ScoredRow*> all;
  for (const ScoredRow& row : rows) {
    if (row.row.role != "judged") continue;
    by_file[row.row.file].push_back(&row);
    by_grade[grade_band(row.row.grade)].push_back(&row);
    all.push_back(&row);
  }
  Scores scores;
  for (const auto& [file, list] : by_file) scores.files.push_back(score(file, list));
  for (const auto& [grade, list] : by_grade) scores.grades.push_back(score(grade, list));
  scores.overall = score("overall", all);
  return scores;
}

}  // namespace ring
