#include "gui/window/action_table.h"

#include <array>

namespace ring::gui {

namespace {

constexpr auto kActions = std::to_array<ActionInfo>({
    {"open", "File", "Open …", "Ctrl+O",
     "A scenario, a run, a session, a machine profile or a model's config.json"},
    {"save_session", "File", "Save session", "Ctrl+S",
     "Everything as it is now, to be reopened exactly so"},
    {"save_session_as", "File", "Save session as …", "Ctrl+Shift+S",
     "The session under another name"},
    {"save_scenario", "File", "Save scenario …", "", "The parameters, for ringscope --scenario"},
    {"save_run", "File", "Save run …", "", "What was measured and predicted, as a run file"},
    {"export", "File", "Export …", "Ctrl+E",
     "What is on screen as SVG, PDF, PNG or CSV; the timeline also as a Chrome trace"},
    {"quit", "File", "Quit", "Ctrl+Q", "Close the window"},

    {"undo", "Edit", "Undo", "Ctrl+Z", "Take back the last change; a drag of a slider is one"},
    {"redo", "Edit", "Redo", "Ctrl+Shift+Z; Ctrl+Y", "Make it again"},
    {"reset_what_if", "Edit", "Clear what-ifs", "",
     "Links, jitter and ranks as the machine has them"},
    {"copy_answers", "Edit", "Copy answers", "Ctrl+Shift+C", "What the Answers dock says, as text"},

    {"tab_timeline", "View", "Timeline", "Ctrl+1", "When every op is done"},
    {"tab_sweeps", "View", "Sweeps", "Ctrl+2", "Many tunings side by side"},
    {"tab_ring", "View", "Ring", "Ctrl+3", "The machine, with its ranks in ring order"},
    {"parameters", "View", "Parameters", "F6", "Go to the parameters, showing them if hidden"},
    {"answers", "View", "Answers", "F7", "Go to the answers, showing them if hidden"},
    {"hide_docks", "View", "Hide or show docks", "F8", "Room for the picture"},
    {"theme", "View", "Light or dark", "Ctrl+T", "Change between the light and the dark theme"},
    {"play", "View", "Play", "Ctrl+Space", "Let the cursor run through the timeline"},
    {"hop_colors", "View", "Hop colours", "Ctrl+L",
     "Colour hops by how busy they are, or by their slack"},

    {"measure", "Run", "Measure now", "Ctrl+R",
     "Run this configuration for real on this machine, and lay it over the prediction"},
    {"calibrate", "Run", "Calibrate this machine", "",
     "Measure for a minute what attention and copies cost here"},
    {"cancel", "Run", "Cancel", "Ctrl+.", "Stop measuring, calibrating, opening and sweeping"},
    {"clear_measured", "Run", "Remove measured run", "", "Show the prediction alone"},

    {"sweep_block_depth", "Sweep", "Block size and depth", "",
     "A heat map of every block size with every depth"},
    {"sweep_seq_len", "Sweep", "Sequence length", "", "From an eighth to eight times as long"},
    {"sweep_ring_size", "Sweep", "Ring size", "", "From 2 to 64 ranks"},
    {"sweep_strategies", "Sweep", "Strategies", "", "All strategies side by side"},

    {"palette", "Help", "Command palette …", "Ctrl+Shift+P", "Find any command by its name"},
    {"help", "Help", "Keys and gestures", "?; F1", "This sheet"},
    {"about", "Help", "About RingScope", "", "Version, and what it was built with"},
});

}  // namespace

std::span<const ActionInfo> window_actions() { return kActions; }

}  // namespace ring::gui
