#include "gui/session/open_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/hf_config.h"
#include "core/formats/import/detect.h"
#include "core/formats/machine_json.h"
#include "core/formats/scenario_toml.h"

namespace ring::gui {

namespace {

constexpr size_t kHeadBytes = 4096;

OpenedFile open_run(const std::string& text, const std::string& path) {
  OpenedRun opened{measured_of(parse_run(text, path))};
  opened.measured.path = QString::fromStdString(path);
  return opened;
}

OpenedFile open_session(const std::string& text, const std::string& path) {
  OpenedSession opened{parse_session(text, path), {}, {}};
  const Session& session = opened.session;
  if (session.run) {
    opened.measured = measured_of(*session.run);
  } else if (!session.run_path.empty()) {
    try {
      opened.measured = read_measured(session.run_path);
    } catch (const Error& error) {
      opened.warning = error.what();
    }
  }
  return opened;
}

}  // namespace

OpenedFile open_file(const std::string& path) {
  const std::string absolute = std::filesystem::absolute(path).string();
  if (path.ends_with(".toml")) return OpenedScenario{read_scenario(absolute)};
  const std::string text = read_file(absolute);
  const std::string_view head = std::string_view(text).substr(0, kHeadBytes);
  if (head.find(kSessionSchema) != std::string_view::npos) return open_session(text, absolute);
  const FileKind kind = detect(text);
  switch (kind) {
    case FileKind::kRunFile:
      return open_run(text, absolute);
    case FileKind::kMachineFile:
      parse_machine(text, absolute);
      return OpenedMachine{absolute};
    case FileKind::kHfConfig:
      return OpenedModel{absolute, parse_hf_config(text, absolute).model};
    default:
      break;
  }
  // Broken files of ours are not told by their marks; their readers say best what is wrong.
  if (head.find(kRunSchema) != std::string_view::npos) return open_run(text, absolute);
  if (kind == FileKind::kUnknown) {
    throw_usage(path + " is no file that the window can open",
                "a scenario (.toml), a run, a session, a machine profile, or a model's "
                "config.json");
  }
  throw_usage(fmt::format("{} is {}: {}", path, name(kind), describe(kind)),
              "`ringscope import` reads it");
}

}  // namespace ring::gui
