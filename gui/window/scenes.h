// Scenes: the pictures that the window can export, by name.
#pragma once

#include <span>
#include <string_view>

#include "gui/window/export.h"

namespace ring::gui {

class MainWindow;

struct SceneInfo {
  std::string_view name;  ///< "heatmap": what --scene takes.
  std::string_view summary;
};
std::span<const SceneInfo> all_scenes();

/// Throws Error(kUsage) for a name that is not known. The window must outlive the source.
SceneSource scene_of(MainWindow& window, std::string_view name);
/// Runs and shows what the scene needs: the sweep of a heat map, for example. It is ready when
/// nothing runs any more.
void prepare_scene(MainWindow& window, std::string_view name);

/// What is on screen now, and its size.
SceneSource shown_scene(MainWindow& window);
QSize shown_size(MainWindow& window);

}  // namespace ring::gui
