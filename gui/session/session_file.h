// Session files: the window as it was, scenario, run and view, to be opened again exactly so.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/run_json.h"
#include "core/scenario.h"

namespace ring::gui {

struct SessionMark {
  Picoseconds at_ps = 0;
  std::string label;
  bool operator==(const SessionMark&) const = default;
};

/// What is looked at, and how.
struct SessionView {
  std::string tab = "timeline";    ///< "timeline", "sweeps" or "ring".
  std::string theme = "light";     ///< "light" or "dark".
  std::string layout = "stacked";  ///< "measured", "predicted", "stacked" or "overlaid".
  Picoseconds from_ps = 0, to_ps = 0;
  bool is_fitted = true;  ///< The whole run is in sight, whatever its length.
  Picoseconds cursor_ps = 0;
  int64_t scroll_y = 0;
  std::string search;
  std::vector<SessionMark> marks;
  std::string sweep = "block_depth";       ///< What the sweep tab sweeps over.
  int64_t sweep_value = 0;                 ///< And which value it shows, by number.
  std::string hop_colors = "utilization";  ///< Or "slack".
  std::string geometry, docks;             ///< Qt's own, in base 64; may be empty.
  bool operator==(const SessionView&) const = default;
};

struct Session {
  Scenario scenario;
  /// The measured run: its file, or the run itself where it is in none.
  std::string run_path;
  std::optional<RunFile> run;
  bool is_recorded = false;  ///< The prediction shown is the one that the run holds.
  SessionView view;
};

inline constexpr std::string_view kSessionSchema = "ringscope-session";
inline constexpr int kSessionSchemaVersion = 1;

/// Reads back to an equal session.
std::string session_json(const Session& session);
/// `name` is the file's name in messages. Throws Error(kUsage) with file and JSON pointer (or line
/// and column) for anything unknown, missing, of a wrong type or out of range.
Session parse_session(std::string_view text, const std::string& name);

}  // namespace ring::gui
