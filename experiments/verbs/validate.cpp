#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/library.h"
#include "core/paths.h"
#include "experiments/json.h"
#include "experiments/table.h"
#include "experiments/validation/scatter.h"
#include "experiments/validation/scores.h"
#include "experiments/verb.h"

namespace ring {

namespace {

std::string percent(double fraction) { return fmt::format("{:+.1f} %", 100 * fraction); }
std::string share(std::optional<double> fraction) {
  return fraction ? fmt::format("{:.0f} %", 100 * *fraction) : "-";
}

Json score_json(const Score& score) {
  Json json = {{"name", score.name},
               {"rows", score.rows},
               {"predicted", score.predicted},
               {"groups", score.groups}};
  // Of no prediction there is no error, neither 0 nor another.
  const auto set = [&](const char* key, double value) {
    json[key] = score.predicted > 0 ? Json(value) : Json();
  };
  set("median_abs_error", score.median_abs_error);
  set("mean_abs_error", score.mean_abs_error);
  set("worst_abs_error", score.worst_abs_error);
  set("bias", score.bias);
  set("coverage", score.coverage);
  json["rank_correlation"] = score.rank_correlation ? Json(*score.rank_correlation) : Json();
  json["picked_best"] = score.picked_best ? Json(*score.picked_best) : Json();
  return json;
}

Json row_json(const ScoredRow& row) {
  Json json = {{"file", row.row.file},
               {"id", row.row.id},
               {"role", row.row.role},
               {"grade", row.row.grade},
               {"algorithm", row.row.algorithm},
               {"metric", row.row.metric},
               {"unit", row.row.unit}};
  json["published"] = row.row.value ? Json(*row.row.value) : Json();
  if (!row.skip.empty()) {
    json["skipped"] = row.skip;
    return json;
  }
  json["predicted"] = row.predicted;
  json["error"] = row.error;
  json["interval"] = {row.low, row.high};
  json["covered"] = row.is_covered;
  json["machine"] = row.meaning.machine;
  json["method"] = row.prediction.method;
  json["assumptions"] = row.meaning.assumptions;
  return json;
}

class ValidateVerb final : public Verb {
 public:
  std::string_view name() const override { return "validate"; }
  std::string_view summary() const override {
    return "Predict what others measured and published, and say how far off it is";
  }

  void declare(VerbOptions& options) override {
    options.text("--published", published_, "FOLDER",
                 "CSV files of published measurements [those that come along]");
    options.text("--machines", machines_, "FOLDER",
                 "Machine files to prefer to those of the library");
    options.text("--file", file_, "NAME", "Only this file of the folder, without ending");
    options.flag("--rows", wants_rows_, "Print every row, not only the worst");
    options.text("--svg", svg_, "FILE", "Write the scatter plot of predicted and published times");
  }

  int run(VerbContext& context) override {
    const std::string folder = published_ ? *published_ : library_folder(LibraryKind::kPublished);
    MachineShelf shelf(machines_.value_or(""));
    std::vector<ScoredRow> rows;
    std::set<std::string> files;
    std::vector<PublishedRow> published = read_published_rows(folder);
    for (const PublishedRow& row : published) files.insert(row.file);
    if (file_) {
      std::erase_if(published, [&](const PublishedRow& row) { return row.file != *file_; });
    }
    for (const PublishedRow& row : published) {
      if (context.is_interrupted) break;
      rows.push_back(score_row(row, shelf));
    }
    const bool is_partial = rows.size() < published.size();
    if (published.empty()) {
      throw_usage(file_ ? fmt::format("no published file '{}'", *file_)
                        : fmt::format("no published row in {}", folder),
                  files.empty() ? "" : fmt::format("files are {}", fmt::join(files, ", ")));
    }
    const Scores scores = score_all(rows);
    if (svg_) {
      make_parent_folders(*svg_);
      write_file(*svg_, scatter_svg(rows));
    }
    if (context.console.is_json()) {
      print_json(context.console, rows, scores, is_partial);
    } else {
      print_text(context.console, rows, scores);
    }
    if (is_partial) {
      throw Error(ErrorKind::kInterrupted,
                  fmt::format("stopped after {} of {} rows: the scores are of those alone",
                              rows.size(), published.size()));
    }
    return 0;
  }

 private:
  static void print_json(Console& console, const std::vector<ScoredRow>& rows, const Scores& scores,
                         bool is_partial) {
    Json document = json_document("validate");
    document["partial"] = is_partial;
    for (const auto& [key, list] :
         {std::pair("files", &scores.files), {"grades", &scores.grades}}) {
      document[key] = Json::array();
      for (const Score& score : *list) document[key].push_back(score_json(score));
    }
    document["overall"] = score_json(scores.overall);
    document["rows"] = Json::array();
    for (const ScoredRow& row : rows) document["rows"].push_back(row_json(row));
    console.print_document(document);
  }

  void print_text(Console& console, const std::vector<ScoredRow>& rows,
                  const Scores& scores) const {
    const Style& style = console.style();
    Table table;
    table.column("rows of", Align::kLeft).column("rows").column("predicted").column("median");
    table.column("mean").column("worst").column("bias").column("coverage").column("rank corr.");
    table.column("best picked");
    const auto add = [&](const Score& score) {
      const auto error = [&](double value) {
        return score.predicted > 0 ? fmt::format("{:.1f} %", 100 * value) : "-";
      };
      table.row({score.name, fmt::format("{}", score.rows), fmt::format("{}", score.predicted),
                 error(score.median_abs_error), error(score.mean_abs_error),
                 error(score.worst_abs_error), score.predicted > 0 ? percent(score.bias) : "-",
                 score.predicted > 0 ? share(score.coverage) : "-",
                 score.rank_correlation ? fmt::format("{:.2f}", *score.rank_correlation) : "-",
                 score.picked_best ? fmt::format("{} of {}", share(score.picked_best), score.groups)
                                   : "-"});
    };
    for (const Score& score : scores.files) add(score);
    for (const Score& score : scores.grades) add(score);
    add(scores.overall);
    console.print(table.text(style) + "\n" + reasons_text(rows, style) + rows_text(rows, style));
  }

  /// Why judged rows were not predicted, the most frequent reasons first.
  static std::string reasons_text(const std::vector<ScoredRow>& rows, const Style& style) {
    constexpr size_t kMost = 12;
    std::map<std::pair<std::string, std::string>, int64_t> counts;
    for (const ScoredRow& row : rows) {
      if (!row.skip.empty() && row.row.role == "judged") ++counts[{row.row.file, row.skip}];
    }
    if (counts.empty()) return {};
    std::vector<std::pair<int64_t, std::pair<std::string, std::string>>> sorted;
    for (const auto& [reason, count] : counts) sorted.emplace_back(count, reason);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    Table table;
    table.column("not predicted", Align::kLeft).column("rows").column("why", Align::kLeft);
    int64_t left_out = 0;
    for (size_t i = 0; i < sorted.size(); ++i) {
      const auto& [count, reason] = sorted[i];
      if (i < kMost) {
        table.row({reason.first, fmt::format("{}", count), reason.second});
      } else {
        left_out += count;
      }
    }
    if (left_out > 0) table.row({"others", fmt::format("{}", left_out), "--rows names them all"});
    return table.text(style) + "\n";
  }

  /// All rows, or the ten that are farthest off.
  std::string rows_text(const std::vector<ScoredRow>& rows, const Style& style) const {
    constexpr size_t kWorst = 10;
    std::vector<const ScoredRow*> shown;
    for (const ScoredRow& row : rows) {
      if (wants_rows_ || (row.skip.empty() && row.row.role == "judged")) shown.push_back(&row);
    }
    if (!wants_rows_) {
      std::stable_sort(shown.begin(), shown.end(), [](const ScoredRow* a, const ScoredRow* b) {
        return std::abs(a->error) > std::abs(b->error);
      });
      shown.resize(std::min(shown.size(), kWorst));
    }
    Table table;
    table.column(wants_rows_ ? "row" : "farthest off", Align::kLeft).column("grade", Align::kLeft);
    table.column("strategy", Align::kLeft).column("published").column("predicted").column("error");
    table.column("90 % interval").column("how", Align::kLeft);
    for (const ScoredRow* row : shown) {
      const std::string published =
          row->row.value ? fmt::format("{:.4g} {}", *row->row.value, row->row.unit) : "-";
      if (!row->skip.empty()) {
        table.row({row->row.id, row->row.grade, row->row.algorithm, published, "-", "-", "-",
                   "not predicted: " + row->skip});
        continue;
      }
      std::string how = row->prediction.method;
      for (const std::string& text : row->meaning.assumptions) how += "; assumed " + text;
      if (row->row.role != "judged") how += "; calibration, not judged";
      table.row({row->row.id, row->row.grade, row->row.algorithm + " " + row->row.cp, published,
                 fmt::format("{:.4g}", row->predicted), percent(row->error),
                 fmt::format("{:.4g} .. {:.4g}", row->low, row->high), how});
    }
    return table.text(style);
  }

  std::optional<std::string> published_, machines_, file_, svg_;
  bool wants_rows_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_validate_verb() { return std::make_unique<ValidateVerb>(); }

}  // namespace ring
