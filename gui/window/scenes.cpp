#include "gui/window/scenes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <QPainter>
#include <QTabWidget>
#include <array>
#include <map>

#include "core/error.h"
#include "core/formats/chrome_trace.h"
#include "gui/window/main_window.h"

namespace ring::gui {

namespace {

constexpr auto kScenes = std::to_array<SceneInfo>({
    {"timeline", "when every op is done"},
    {"heatmap", "every block size with every depth"},
    {"seq-lines", "sequence lengths, with intervals"},
    {"ring-lines", "ring sizes, with intervals"},
    {"strategies", "all strategies side by side"},
    {"ring", "the machine with its ranks in ring order"},
    {"window", "the whole window"},
});

const std::map<std::string_view, SweepKind> kSweepScenes = {{"heatmap", SweepKind::kBlockDepth},
                                                            {"seq-lines", SweepKind::kSeqLen},
                                                            {"ring-lines", SweepKind::kRingSize},
                                                            {"strategies", SweepKind::kStrategies}};

void write_trace(const TimelineModel* model, const std::string& path) {
  std::vector<TraceInput> inputs;
  if (model != nullptr) {
    for (const auto origin : {TimelineOrigin::kMeasured, TimelineOrigin::kPredicted}) {
      const ModelRun* run = model->run(origin);
      if (run != nullptr) inputs.push_back({&run->timeline(), run->data->program.get()});
    }
  }
  if (inputs.empty()) throw_usage("there is no timeline yet");
  write_chrome_trace(path, inputs);
}

SceneSource timeline_scene(MainWindow& window) {
  SceneSource scene;
  scene.name = "timeline";
  scene.draw = [&window](QPaintDevice& device, QSize size, bool is_vector, double ratio) {
    QPainter painter(&device);
    RenderOptions options;
    options.is_vector = is_vector;
    options.pixel_ratio = ratio;
    window.timeline().render_to(painter, size, options);
  };
  scene.csv = [&window] { return window.timeline().visible_csv(); };
  scene.write_trace = [&window](const std::string& path) {
    ring::gui::write_trace(window.timeline().model(), path);
  };
  return scene;
}

SceneSource sweep_scene(MainWindow& window, std::string_view name) {
  SceneSource scene;
  scene.name = name;
  scene.draw = [&window](QPaintDevice& device, QSize size, bool is_vector, double) {
    window.sweeps().plot().draw_on(device, size, is_vector);
  };
  scene.csv = [&window] { return window.sweeps().csv(); };
  return scene;
}

SceneSource ring_scene(MainWindow& window) {
  SceneSource scene;
  scene.name = "ring";
  scene.draw = [&window](QPaintDevice& device, QSize size, bool, double) {
    QPainter painter(&device);
    window.ring().render_to(painter, size);
  };
  scene.csv = [&window] { return window.ring().csv(); };
  return scene;
}

SceneSource window_scene(MainWindow& window) {
  SceneSource scene;
  scene.name = "window";
  scene.draw = [&window](QPaintDevice& device, QSize size, bool, double) {
    if (window.size() != size) window.resize(size);
    QPainter painter(&device);
    window.render(&painter);
  };
  return scene;
}

}  // namespace

std::span<const SceneInfo> all_scenes() { return kScenes; }

SceneSource scene_of(MainWindow& window, std::string_view name) {
  if (name == "timeline") return timeline_scene(window);
  if (name == "ring") return ring_scene(window);
  if (name == "window") return window_scene(window);
  if (kSweepScenes.count(name) != 0) return sweep_scene(window, name);
  std::vector<std::string_view> names;
  for (const SceneInfo& info : kScenes) names.push_back(info.name);
  const std::string near = nearest_spelling(name, names.data(), static_cast<int>(names.size()));
  throw_usage(fmt::format("no scene '{}'{}", name, near.empty() ? "" : ", did you mean " + near),
              fmt::format("scenes are {}", fmt::join(names, ", ")));
}

void prepare_scene(MainWindow& window, std::string_view name) {
  scene_of(window, name);
  const auto sweep = kSweepScenes.find(name);
  if (sweep != kSweepScenes.end()) {
    window.sweeps().set_kind(sweep->second);
    window.tabs().setCurrentWidget(&window.sweeps());
    window.sweeps().run();
  } else if (name == "ring") {
    window.tabs().setCurrentWidget(&window.ring());
  }
}

SceneSource shown_scene(MainWindow& window) {
  const QWidget* shown = window.tabs().currentWidget();
  if (shown == &window.ring()) return ring_scene(window);
  if (shown == &window.timeline()) return timeline_scene(window);
  for (const auto& [name, kind] : kSweepScenes) {
    if (kind == window.sweeps().plot().results().kind) return sweep_scene(window, name);
  }
  RING_ASSERT(false);
}

QSize shown_size(MainWindow& window) {
  const QWidget* shown = window.tabs().currentWidget();
  return shown == &window.sweeps() ? window.sweeps().plot().size() : shown->size();
}

}  // namespace ring::gui
