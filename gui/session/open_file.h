// OpenedFile: what a file that was dropped or chosen turned out to be, read off the GUI thread.
#pragma once

#include <string>
#include <variant>

#include "core/model_shape.h"
#include "core/scenario.h"
#include "gui/session/session_file.h"
#include "gui/session/workspace.h"

namespace ring::gui {

struct OpenedScenario {
  Scenario scenario;
};
struct OpenedRun {
  MeasuredFile measured;
};
struct OpenedSession {
  Session session;
  std::optional<MeasuredFile> measured;
  std::string warning;  ///< Why the measured run is missing; empty when it is not.
};
struct OpenedMachine {
  std::string path;
};
struct OpenedModel {
  std::string path;
  ModelShape model;
};

using OpenedFile =
    std::variant<OpenedScenario, OpenedRun, OpenedSession, OpenedMachine, OpenedModel>;

/// Tells by content, not by name; a name that ends in ".toml" is a scenario. Throws Error(kUsage)
/// for what cannot be read, naming what the file is where that is known.
OpenedFile open_file(const std::string& path);

}  // namespace ring::gui
