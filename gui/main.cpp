// ringscope-gui: see a ring at once, move it, and watch it answer.
#include <fmt/format.h>

#include <QApplication>
#include <QCommandLineParser>
#include <QFileInfo>
#include <cstdio>
#include <cstring>
#include <optional>

#include "core/build_info.h"
#include "core/error.h"
#include "core/formats/example_scenarios.h"
#include "gui/window/headless.h"
#include "gui/window/look.h"
#include "gui/window/main_window.h"
#include "gui/window/scenes.h"

namespace ring::gui {

namespace {

bool has_argument(int argc, char** argv, const char* name) {
  for (int i = 1; i < argc; ++i) {
    const bool is_it = std::strncmp(argv[i], name, std::strlen(name)) == 0;
    if (is_it) return true;
  }
  return false;
}

/// What there is to choose from, for --help.
QString description() {
  std::string text = "Shows a ring of attention in time, predicted and measured.\n\nScenes:\n";
  for (const SceneInfo& scene : all_scenes()) {
    text += fmt::format("  {:<12}{}\n", scene.name, scene.summary);
  }
  text += "\nShipped scenarios, by their names:\n";
  for (const ExampleScenario& example : example_scenarios()) {
    text += fmt::format("  \"{}\": {}\n", example.name, example.summary);
  }
  return QString::fromStdString(text);
}

Theme theme_of(const QString& text) {
  if (text == QStringLiteral("light")) return Theme::kLight;
  if (text == QStringLiteral("dark")) return Theme::kDark;
  if (text == QStringLiteral("auto")) return preferred_theme();
  throw_usage(fmt::format("no theme '{}'", text.toStdString()), "light, dark or auto");
}

QSize size_of(const QString& text) {
  const QStringList parts = text.split('x');
  bool is_width = false, is_height = false;
  const int width = parts.value(0).toInt(&is_width), height = parts.value(1).toInt(&is_height);
  constexpr int kLeast = 64, kMost = 16384;
  const bool is_sane = parts.size() == 2 && is_width && is_height && width >= kLeast &&
                       height >= kLeast && width <= kMost && height <= kMost;
  if (!is_sane) {
    throw_usage(fmt::format("--size {} is no size", text.toStdString()),
                "such as 1600x900, 64 to 16384 each");
  }
  return {width, height};
}

double scale_of(const QString& text) {
  bool is_number = false;
  const double scale = text.toDouble(&is_number);
  if (!is_number || !(scale >= 0.5 && scale <= 8)) {
    throw_usage(fmt::format("--scale {} is out of range", text.toStdString()), "0.5 to 8");
  }
  return scale;
}

const ExampleScenario* find_example(const QString& name) {
  for (const ExampleScenario& example : example_scenarios()) {
    if (example.name == name.toStdString()) return &example;
  }
  return nullptr;
}

class Program {
 public:
  Program() {
    parser_.setApplicationDescription(description());
    parser_.addHelpOption();
    parser_.addVersionOption();
    parser_.addPositionalArgument(
        QStringLiteral("FILE"),
        QStringLiteral("A scenario, run or session file, or the name of a "
                       "shipped scenario."),
        QStringLiteral("[FILE]"));
    add("export", "Write a scene to FILE (.svg .pdf .png .csv .json) and end.", "FILE");
    add("scene", "The scene to be written.", "NAME", "timeline");
    add("size", "Size of the picture.", "WxH", "1600x900");
    add("scale", "Pixels of a .png per unit of its size.", "N", "1");
    add("theme", "light, dark or auto.", "NAME", "auto");
    add("layout", "measured, predicted, stacked or overlaid.", "NAME");
    add("cursor", "Where the cursor stands, such as 3ms.", "TIME");
  }

  int run(const QApplication& application) {
    parser_.process(application);
    const QStringList files = parser_.positionalArguments();
    if (files.size() > 1) throw_usage("one file at a time", "give one FILE");
    const QString file = files.value(0);
    const ExampleScenario* example = find_example(file);
    const bool is_example = file.isEmpty() || (example != nullptr && !QFileInfo::exists(file));
    const ExampleScenario& first =
        is_example && example != nullptr ? *example : example_scenarios().front();
    MainWindow window(scenario_of(first), theme_of(parser_.value(QStringLiteral("theme"))));
    if (parser_.isSet(QStringLiteral("export")))
      return write(window, is_example ? QString() : file);
    refuse_without_export();
    window.show();
    if (!is_example) window.files().open_path(file);
    return QApplication::exec();
  }

 private:
  void add(const char* name, const char* help, const char* value, const char* fallback = "") {
    parser_.addOption({QString::fromLatin1(name), QString::fromLatin1(help),
                       QString::fromLatin1(value), QString::fromLatin1(fallback)});
  }

  /// Options that would be ignored.
  void refuse_without_export() const {
    for (const char* name : {"scene", "size", "scale", "layout", "cursor"}) {
      if (parser_.isSet(QString::fromLatin1(name))) {
        throw_usage(fmt::format("--{} needs --export", name));
      }
    }
  }

  int write(MainWindow& window, const QString& file) const {
    const auto value = [this](const char* name) {
      return parser_.value(QString::fromLatin1(name)).toStdString();
    };
    HeadlessExport wanted;
    wanted.file = value("export");
    wanted.scene = value("scene");
    wanted.layout = value("layout");
    wanted.cursor = value("cursor");
    wanted.options.size = size_of(parser_.value(QStringLiteral("size")));
    wanted.options.pixel_ratio = scale_of(parser_.value(QStringLiteral("scale")));
    std::optional<Error> failure;
    QObject::connect(&window.files().task(), &Task::failed, &window,
                     [&failure](const QString& message, const QString& hint) {
                       failure =
                           Error(ErrorKind::kUsage, message.toStdString(), hint.toStdString());
                     });
    const Theme theme = window.theme();
    window.setAttribute(Qt::WA_DontShowOnScreen);
    window.show();
    if (!file.isEmpty()) window.files().open_path(file);
    wait_until_settled(window, false);
    if (failure) throw *failure;
    if (parser_.isSet(QStringLiteral("theme"))) window.set_theme(theme);
    export_headless(window, wanted);
    return 0;
  }

  QCommandLineParser parser_;
};

/// Without a screen Qt says of every window that its hints of size do nothing.
void print_message(QtMsgType, const QMessageLogContext&, const QString& text) {
  if (text.contains(QStringLiteral("propagateSizeHints"))) return;
  fmt::print(stderr, "{}\n", text.toStdString());
}

int run(int argc, char** argv) {
  qInstallMessageHandler(print_message);
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
    // Pictures are written, and questions answered, the same with and without a screen.
    const bool needs_no_screen =
        has_argument(argc, argv, "--export") || has_argument(argc, argv, "--help") ||
        has_argument(argc, argv, "-h") || has_argument(argc, argv, "--version") ||
        has_argument(argc, argv, "-v");
    const bool has_screen =
        !qEnvironmentVariableIsEmpty("DISPLAY") || !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY");
    if (!needs_no_screen && !has_screen) {
      throw Error(ErrorKind::kUnavailable,
                  "there is no screen: neither DISPLAY nor "
                  "WAYLAND_DISPLAY is set",
                  "--export FILE draws a picture without one");
    }
    if (needs_no_screen) qputenv("QT_QPA_PLATFORM", "offscreen");
  }
  QApplication application(argc, argv);
  QApplication::setApplicationName(QStringLiteral("ringscope-gui"));
  QApplication::setApplicationVersion(QString::fromUtf8(kVersion.data(), std::ssize(kVersion)));
  return Program().run(application);
}

}  // namespace

}  // namespace ring::gui

int main(int argc, char** argv) {
  try {
    return ring::gui::run(argc, argv);
  } catch (const ring::Error& error) {
    fmt::print(stderr, "ringscope-gui: {}\n", error.what());
    if (!error.hint().empty()) fmt::print(stderr, "  {}\n", error.hint());
    return ring::exit_code(error.kind());
  }
}
