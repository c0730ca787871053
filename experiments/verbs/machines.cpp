#include <fmt/format.h>

#include "core/error.h"
#include "core/formats/machine_json.h"
#include "core/library.h"
#include "core/paths.h"
#include "experiments/json.h"
#include "experiments/machine_library/machine_library.h"
#include "experiments/table.h"
#include "experiments/verb.h"

namespace ring {

namespace {

class MachinesVerb final : public Verb {
 public:
  std::string_view name() const override { return "machines"; }
  std::string_view summary() const override {
    return "List the machines that come along, show one, or build their files";
  }

  void declare(VerbOptions& options) override {
    options.optional_argument("NAME", what_,
                              "Machine to show with its sources, or the word build [list all]");
    options.text("--published", published_, "FOLDER",
                 "build: published calibration files [those that come along]");
    options.text("-o,--output", output_, "FOLDER", "build: where the machine files go");
  }

  int run(VerbContext& context) override {
    if (what_ && *what_ == "build") {
      build(context.console);
    } else if (published_ || output_) {
      throw_usage("--published and --output belong to `ringscope machines build`");
    } else if (what_) {
      show(context.console, *what_);
    } else {
      list(context.console);
    }
    return 0;
  }

 private:
  void build(Console& console) const {
    if (!output_) throw_usage("machines build needs --output FOLDER");
    const std::string published =
        published_ ? *published_ : library_folder(LibraryKind::kPublished);
    Json document = json_document("machines");
    document["written"] = Json::array();
    for (const MachineFile& file : build_machine_library(published)) {
      const std::string path = *output_ + "/" + file.machine.name + ".json";
      require_place_for(path);
      write_machine(path, file);
      document["written"].push_back(path);
      console.print(path + "\n");
    }
    if (console.is_json()) console.print_document(document);
  }

  static void show(Console& console, const std::string& name) {
    const std::string path = find_in_library(LibraryKind::kMachines, name);
    if (path.empty()) {
      const std::string near = nearest_in_library(LibraryKind::kMachines, name);
      throw_usage(fmt::format("there is no machine '{}' in the library", name),
                  near.empty() ? "ringscope machines lists them" : "did you mean " + near + "?");
    }
    const MachineFile file = read_machine(path);
    const Machine& machine = file.machine;
    Json document = json_document("machines");
    document["name"] = machine.name;
    document["path"] = path;
    document["processors"] = machine.processors.size();
    document["context"] = machine.context;
    document["provenance"] = machine.provenance;
    Table table;
    table.column("value", Align::kLeft).column("source", Align::kLeft);
    for (const auto& [what, source] : machine.provenance) table.row({what, source});
    std::string text =
        fmt::format("{}: {} processors, {}\n\n", machine.name, machine.processors.size(), path);
    text += table.text(console.style()) + "\n";
    Table fits;
    fits.column("fit", Align::kLeft).column("samples").column("median").column("worst");
    fits.column("left out: median").column("worst ");
    document["fits"] = Json::object();
    for (const auto& [probe, fit] : file.calibration.fits) {
      const bool has_left_out = fit.held_out_samples > 0;
      fits.row({probe, fmt::format("{}", fit.fitted_samples), format_percent(fit.fitted_median),
                format_percent(fit.fitted_worst),
                has_left_out ? format_percent(fit.held_out_median) : "-",
                has_left_out ? format_percent(fit.held_out_worst) : "-"});
      document["fits"][probe] = {{"samples", fit.fitted_samples},
                                 {"median", fit.fitted_median},
                                 {"worst", fit.fitted_worst},
                                 {"left_out_median", fit.held_out_median},
                                 {"left_out_worst", fit.held_out_worst}};
    }
    if (!fits.is_empty()) text += fits.text(console.style()) + "\n";
    Table ranges;
    ranges.column("trusted", Align::kLeft).column("from").column("to");
    document["trusted"] = Json::object();
    for (const auto& [quantity, range] : machine.trusted) {
      ranges.row({quantity, fmt::format("{}", range.low), fmt::format("{}", range.high)});
      document["trusted"][quantity] = {range.low, range.high};
    }
    console.print(text + ranges.text(console.style()));
    if (console.is_json()) console.print_document(document);
  }

  static void list(Console& console) {
    Json document = json_document("machines");
    document["machines"] = Json::array();
    Table table;
    table.column("machine", Align::kLeft).column("processors").column("GPU", Align::kLeft);
    table.column("kernels", Align::kLeft).column("shape", Align::kLeft);
    for (const LibraryEntry& entry : library_entries(LibraryKind::kMachines)) {
      const Machine machine = read_machine(entry.path).machine;
      const auto context = [&](const char* key) {
        const auto found = machine.context.find(key);
        return found == machine.context.end() ? std::string() : found->second;
      };
      table.row({entry.name, fmt::format("{}", machine.processors.size()), context("gpu"),
                 context("kernels"), context("shape")});
      document["machines"].push_back({{"name", entry.name},
                                      {"path", entry.path},
                                      {"processors", machine.processors.size()},
                                      {"context", machine.context}});
    }
    console.print(table.text(console.style()));
    if (console.is_json()) console.print_document(document);
  }

  std::optional<std::string> what_, published_, output_;
};

}  // namespace

std::unique_ptr<Verb> make_machines_verb() { return std::make_unique<MachinesVerb>(); }

}  // namespace ring
