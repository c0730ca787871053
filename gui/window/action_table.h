// The one table of what the window can be told to do: menus, keys, palette and help come from it.
#pragma once

#include <span>
#include <string_view>

namespace ring::gui {

struct ActionInfo {
  std::string_view id;    ///< "save_session".
  std::string_view menu;  ///< "File".
  std::string_view text;  ///< "Save session".
  std::string_view keys;  ///< As QKeySequence reads them, alternatives separated by "; ".
  std::string_view help;  ///< One sentence.
};

/// In the order of menus and help. What the timeline does besides is in timeline_actions().
std::span<const ActionInfo> window_actions();

}  // namespace ring::gui
