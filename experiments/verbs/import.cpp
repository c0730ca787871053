#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/paths.h"
#include "experiments/import_json.h"
#include "experiments/import_output.h"
#include "experiments/run_source.h"
#include "experiments/verb.h"
#include "kernels/topology_choice.h"

namespace ring {

namespace {

/// The path of "topo.txt:nodes=2", which is a file and not a shape of that name.
std::string path_of(const std::string& text) {
  return is_topology_file(text) ? topology_path(text) : text;
}

FileKind kind_of_word(const std::string& word) {
  if (word == "auto") return FileKind::kUnknown;
  if (const auto kind = file_kind_of(word)) return *kind;
  std::vector<std::string_view> words{"auto"};
  for (int k = 1; k < kFileKinds; ++k) words.push_back(name(static_cast<FileKind>(k)));
  const std::string near = nearest_spelling(word, words.data(), static_cast<int>(words.size()));
  throw_usage(fmt::format("there is no kind of file '{}'{}", word,
                          near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
              fmt::format("kinds are {}", fmt::join(words, ", ")));
}

Tone tone_of(FindingKind kind) {
  switch (kind) {
    case FindingKind::kFound:
      return Tone::kGood;
    case FindingKind::kAssumed:
    case FindingKind::kUnknown:
      return Tone::kWarn;
    case FindingKind::kIgnored:
      return Tone::kDim;
  }
  return Tone::kPlain;
}

class ImportVerb final : public Verb {
 public:
  std::string_view name() const override { return "import"; }
  std::string_view summary() const override {
    return "Say what a file of another tool is and what is in it, and turn it into ours";
  }

  void declare(VerbOptions& options) override {
    options.argument("KIND", kind_, "auto, or what the file is: topo, nccl-tests, trace, ...");
    options.arguments("FILE", files_,
                      "The file; of traces one for each rank. A topology may have keys behind it:\n"
                      "topo.txt:gpu=h100,nodes=2 (ringscope place --help)");
    options.heading("Files");
    options.text("-o,--out", out_, "FILE",
                 "Write what fits: machine (.json) or topology (.toml), link curve (.csv),\n"
                 "scenario of a model (.toml), run file (.json) or Chrome trace (.trace.json),\n"
                 "measurements (.csv), program");
    options.count("--layer", layer_, "Layer of a model [the kind that costs most]", {0});
    options.count("--seq", seq_, "Tokens of the scenario of a model [as many as it allows]");
  }

  int run(VerbContext& context) override {
    const FileKind kind = kind_of_word(kind_);
    for (const std::string& file : files_) {
      if (out_) require_other_file(*out_, path_of(file));
    }
    if (files_.size() > 1) return run_many(context.console, kind);
    Imported file = read_imported(path_of(files_[0]), kind);
    const bool is_model = file.kind == FileKind::kHfConfig;
    if (!is_model && (layer_ || seq_)) {
      throw_usage(
          fmt::format("--layer and --seq are for a model, not for {}", describe(file.kind)));
    }
    add_assumptions(file);
    std::string written;
    if (out_) {
      const ImportChoices choices{files_[0], layer_.value_or(-1), seq_.value_or(0)};
      const ImportOutput output = import_output(file, *out_, choices);
      write_file(*out_, output.text);
      written = output.what;
    }
    report(context.console, file, written);
    return 0;
  }

 private:
  /// What making a machine of a topology takes for granted is said with what the file says.
  void add_assumptions(Imported& file) const {
    const bool is_topology =
        file.kind == FileKind::kTopoMatrix || file.kind == FileKind::kNcclTopology;
    if (!is_topology) return;
    try {
      file.findings = read_topology_machine(files_[0]).findings;
    } catch (const Error& error) {
      if (out_) throw;
      file.findings.push_back(
          {FindingKind::kUnknown, std::string("a machine of it: ") + error.what(), 0});
    }
  }

  int run_many(Console& console, FileKind kind) const {
    if (kind != FileKind::kUnknown && kind != FileKind::kKernelTrace) {
      throw_usage(fmt::format("several files at once are traces of the ranks of one run, not {}",
                              describe(kind)));
    }
    const RunFile run = read_traces(files_);
    Imported file{FileKind::kKernelTrace, run, {}};
    file.findings.push_back({FindingKind::kFound,
                             fmt::format("{} ranks with {} kernels and copies", run.measured->ranks,
                                         run.measured->slices.size()),
                             0});
    file.findings.push_back(
        {FindingKind::kUnknown, "how far the clocks of the ranks are apart: each begins at 0", 0});
    std::string written;
    if (out_) {
      const ImportOutput output = import_output(file, *out_, {files_[0], -1, 0});
      write_file(*out_, output.text);
      written = output.what;
    }
    report(console, file, written);
    return 0;
  }

  void report(Console& console, const Imported& file, const std::string& written) const {
    if (console.is_json()) {
      Json document = json_document("import");
      document["files"] = files_;
      document["kind"] = ring::name(file.kind);
      document["description"] = describe(file.kind);
      document["findings"] = findings_json(file.findings);
      document["content"] = content_json(file);
      if (out_) document["written"] = {{"file", *out_}, {"what", written}};
      console.print_document(document);
      return;
    }
    const Style& style = console.style();
    console.print(fmt::format("{}: {}\n", fmt::join(files_, ", "),
                              style.paint(Tone::kStrong, describe(file.kind))));
    for (const Finding& finding : file.findings) {
      console.print(fmt::format(
          "  {}  {}{}\n",
          style.paint(tone_of(finding.kind), fmt::format("{:8}", ring::name(finding.kind))),
          finding.text,
          finding.line > 0 ? style.paint(Tone::kDim, fmt::format(" (line {})", finding.line))
                           : ""));
    }
    if (out_) console.note(fmt::format("wrote {} ({})", *out_, written));
  }

  std::string kind_;
  std::vector<std::string> files_;
  std::optional<std::string> out_;
  std::optional<int64_t> layer_, seq_;
};

}  // namespace

std::unique_ptr<Verb> make_import_verb() { return std::make_unique<ImportVerb>(); }

}  // namespace ring
