#include "gui/session/session_file.h"

#include <array>
#include <nlohmann/json.hpp>

#include "core/formats/json_object.h"
#include "core/formats/json_text.h"
#include "core/formats/model_library.h"
#include "core/formats/scenario_toml.h"

namespace ring::gui {

namespace {

using Json = nlohmann::ordered_json;

constexpr auto kTabs = std::to_array<std::string_view>({"timeline", "sweeps", "ring"});
constexpr auto kThemes = std::to_array<std::string_view>({"light", "dark"});
constexpr auto kLayouts =
    std::to_array<std::string_view>({"measured", "predicted", "stacked", "overlaid"});
constexpr auto kSweeps =
    std::to_array<std::string_view>({"block_depth", "seq_len", "ring_size", "strategies"});
constexpr auto kHopColors = std::to_array<std::string_view>({"utilization", "slack"});

Json view_json(const SessionView& view) {
  Json marks = Json::array();
  for (const SessionMark& mark : view.marks) {
    marks.push_back({{"at_ps", mark.at_ps}, {"label", mark.label}});
  }
  return {{"tab", view.tab},
          {"theme", view.theme},
          {"layout", view.layout},
          {"from_ps", view.from_ps},
          {"to_ps", view.to_ps},
          {"is_fitted", view.is_fitted},
          {"cursor_ps", view.cursor_ps},
          {"scroll_y", view.scroll_y},
          {"search", view.search},
          {"marks", marks},
          {"sweep", view.sweep},
          {"sweep_value", view.sweep_value},
          {"hop_colors", view.hop_colors},
          {"geometry", view.geometry},
          {"docks", view.docks}};
}

template <size_t N>
std::string word_of(const JsonObject& object, std::string_view key,
                    const std::array<std::string_view, N>& allowed) {
  const std::string& word = object.string(key);
  index_of_word(word, allowed, object.place(key).text());
  return word;
}

SessionView view_of(const nlohmann::json& value, const JsonPlace& place) {
  const JsonObject object(
      value, place,
      {"tab", "theme", "layout", "from_ps", "to_ps", "is_fitted", "cursor_ps", "scroll_y", "search",
       "marks", "sweep", "sweep_value", "hop_colors", "geometry", "docks"});
  SessionView view;
  view.tab = word_of(object, "tab", kTabs);
  view.theme = word_of(object, "theme", kThemes);
  view.layout = word_of(object, "layout", kLayouts);
  view.from_ps = object.integer("from_ps");
  view.to_ps = object.integer("to_ps", view.from_ps);
  view.is_fitted = object.boolean("is_fitted");
  view.cursor_ps = object.integer("cursor_ps");
  view.scroll_y = object.integer("scroll_y", 0, 1 << 30);
  view.search = object.string("search");
  const nlohmann::json& marks = object.array("marks");
  for (size_t i = 0; i < marks.size(); ++i) {
    const JsonObject mark(marks[i], object.place("marks").at(i), {"at_ps", "label"});
    view.marks.push_back({mark.integer("at_ps"), mark.string("label")});
  }
  view.sweep = word_of(object, "sweep", kSweeps);
  view.sweep_value = object.integer("sweep_value", 0, 3);
  view.hop_colors = word_of(object, "hop_colors", kHopColors);
  view.geometry = object.string("geometry");
  view.docks = object.string("docks");
  return view;
}

}  // namespace

std::string session_json(const Session& session) {
  Json document = {{"schema", std::string(kSessionSchema)},
                   {"schema_version", kSessionSchemaVersion},
                   {"scenario", scenario_toml(session.scenario)},
                   {"model", session.scenario.model},
                   {"run_path", session.run_path},
                   {"is_recorded", session.is_recorded},
                   {"view", view_json(session.view)}};
  if (session.run) document["run"] = Json::parse(run_json(*session.run));
  return json_text(document, "session");
}

Session parse_session(std::string_view text, const std::string& name) {
  const nlohmann::json document = parse_json(text, name);
  require_schema(document, name, kSessionSchema, kSessionSchemaVersion);
  const JsonObject object(
      document, {name, ""},
      {"schema", "schema_version", "scenario", "model", "run_path", "is_recorded", "view", "run"});
  Session session;
  session.scenario =
      parse_scenario(object.string("scenario"), name + ", its scenario", shipped_model);
  session.scenario.model = object.string("model");
  session.run_path = object.string("run_path");
  session.is_recorded = object.boolean("is_recorded");
  session.view = view_of(object.at("view"), object.place("view"));
  if (object.has("run")) session.run = parse_run(object.at("run").dump(), name + ", its run");
  return session;
}

}  // namespace ring::gui
