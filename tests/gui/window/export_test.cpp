// Pictures and numbers of every scene, from the window and without one.
#include <gmock/gmock.h>

#include <QFile>
#include <QFontInfo>
#include <QImage>
#include <QProcess>
#include <QStandardPaths>
#include <QSvgRenderer>
#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/scenario_toml.h"
#include "gui/window/scenes.h"
#include "tests/gui/window/window_testing.h"

namespace ring::gui {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Export : public WindowTest {
 protected:
  std::string file(const std::string& name) const { return path(name.c_str()).toStdString(); }
};

/// Colours that occur in the picture; a picture of nothing has one.
size_t colors_in(const QImage& image) {
  std::set<QRgb> colors;
  for (int y = 0; y < image.height(); y += 2) {
    for (int x = 0; x < image.width(); x += 2) colors.insert(image.pixel(x, y));
  }
  return colors.size();
}

TEST_F(Export, EverySceneInEveryFormat) {
  MainWindow window(small_scenario());
  window.show();
  for (const SceneInfo& scene : all_scenes()) {
    HeadlessExport wanted;
    wanted.scene = scene.name;
    wanted.options.size = {900, 600};
    const std::string base = file(std::string(scene.name));
    for (const char* end : {".png", ".svg", ".pdf"}) {
      wanted.file = base + end;
      export_headless(window, wanted);
    }
    const QImage image(QString::fromStdString(base + ".png"));
    EXPECT_EQ(image.size(), QSize(900, 600)) << scene.name;
    EXPECT_GT(colors_in(image), 4U) << scene.name;
    EXPECT_TRUE(QSvgRenderer(QString::fromStdString(base + ".svg")).isValid()) << scene.name;
    EXPECT_THAT(read_file(base + ".pdf"), StartsWith("%PDF")) << scene.name;
    wanted.file = base + ".csv";
    if (scene.name == "window") {
      EXPECT_THROW(export_headless(window, wanted), Error);
    } else {
      export_headless(window, wanted);
      EXPECT_THAT(read_file(wanted.file), HasSubstr(",")) << scene.name;
    }
    wanted.file = base + ".json.gz";
    if (scene.name == "timeline") {
      export_headless(window, wanted);
      EXPECT_THAT(read_file(wanted.file), HasSubstr("traceEvents"));
    } else {
      EXPECT_THROW(export_headless(window, wanted), Error) << scene.name;
    }
  }
}

TEST_F(Export, TwiceThePixelsIsTheSamePicture) {
  MainWindow window(small_scenario());
  window.show();
  HeadlessExport wanted;
  wanted.scene = "ring";
  wanted.options = {{600, 600}, 2};
  wanted.file = file("ring.png");
  export_headless(window, wanted);
  const QImage large(QString::fromStdString(wanted.file));
  EXPECT_EQ(large.size(), QSize(1200, 1200));
  EXPECT_GT(colors_in(large), 4U);
}

TEST_F(Export, LettersOfVectorsAreAsLargeAsOnScreen) {
  MainWindow window(small_scenario());
  window.show();
  HeadlessExport wanted;
  wanted.scene = "timeline";
  wanted.file = file("timeline.svg");
  export_headless(window, wanted);
  const std::string size =
      "font-size=\"" + std::to_string(QFontInfo(window.timeline().font()).pixelSize()) + "\"";
  EXPECT_THAT(read_file(wanted.file), HasSubstr(size));
}

TEST_F(Export, NumbersAreOneLineAPoint) {
  MainWindow window(small_scenario());
  window.show();
  HeadlessExport wanted;
  wanted.scene = "heatmap";
  wanted.file = file("map.csv");
  export_headless(window, wanted);
  const std::string csv = read_file(wanted.file);
  EXPECT_THAT(csv, HasSubstr("cannot finish"));  // Depth 1.
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'),
            std::ssize(window.sweeps().plot().results().points) + 1);
}

TEST_F(Export, UnknownNamesAreRefused) {
  MainWindow window(small_scenario());
  HeadlessExport wanted;
  wanted.file = file("a.bmp");
  EXPECT_THROW(export_headless(window, wanted), Error);
  wanted.file = file("a.png");
  wanted.scene = "heatmpa";
  try {
    export_headless(window, wanted);
    FAIL() << "no such scene";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("heatmap"));
  }
}

/// The program itself.
class Program : public Export {
 protected:
  int run(const QStringList& arguments, const char* platform = "offscreen") {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QString::fromUtf8(platform));
    process.setProcessEnvironment(environment);
    process.start(QStringLiteral(RING_GUI), arguments);
    EXPECT_TRUE(process.waitForFinished(kPatienceMs));
    said_ = process.readAllStandardError().toStdString();
    return process.exitCode();
  }
  std::string said_;
};

TEST_F(Program, ExportsWithoutAScreen) {
  write_file(file("s.toml"), scenario_toml(small_scenario()));
  EXPECT_EQ(run({QStringLiteral("--export"), path("t.svg"), QStringLiteral("--scene"),
                 QStringLiteral("timeline"), path("s.toml")}),
            0)
      << said_;
  EXPECT_THAT(read_file(file("t.svg")), HasSubstr("<svg"));
}

TEST_F(Program, SaysWhatIsWrongAndEndsWithItsCode) {
  EXPECT_EQ(run({QStringLiteral("--export"), path("t.svg"), path("missing.toml")}), 2);
  EXPECT_THAT(said_, HasSubstr("missing.toml"));
  EXPECT_EQ(run({QStringLiteral("--export"), path("t.svg"), QStringLiteral("--scene"),
                 QStringLiteral("nothing")}),
            2);
  EXPECT_EQ(run({QStringLiteral("--scene"), QStringLiteral("ring")}), 2);
  EXPECT_THAT(said_, HasSubstr("--scene needs --export"));
  EXPECT_EQ(run({QStringLiteral("--export"), path("t.svg"), QStringLiteral("--size"),
                 QStringLiteral("9")}),
            2);
  Scenario scenario = small_scenario();
  scenario.tuning.pipeline_depth = 1;
  write_file(file("dead.toml"), scenario_toml(scenario));
  EXPECT_EQ(run({QStringLiteral("--export"), path("t.svg"), path("dead.toml")}), 2);
  EXPECT_THAT(said_, HasSubstr("r0"));
  EXPECT_EQ(run({QStringLiteral("--export"), QStringLiteral("/nowhere/t.svg")}), 1);
}

// One run on a real X server: the window opens, draws, and ends when asked to.
TEST_F(Program, OpensOnAnXServer) {
  const QString xvfb = QStandardPaths::findExecutable(QStringLiteral("Xvfb"));
  if (xvfb.isEmpty()) GTEST_SKIP() << "Xvfb is not installed";
  QProcess server;
  server.start(xvfb, {QStringLiteral("-displayfd"), QStringLiteral("1"), QStringLiteral("-screen"),
                      QStringLiteral("0"), QStringLiteral("1600x1000x24")});
  ASSERT_TRUE(server.waitForStarted(kPatienceMs));
  if (!server.waitForReadyRead(kPatienceMs)) GTEST_SKIP() << "Xvfb does not start here";
  const QString display = ":" + QString::fromUtf8(server.readLine()).trimmed();
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert(QStringLiteral("DISPLAY"), display);
  environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("xcb"));
  process.setProcessEnvironment(environment);
  process.start(QStringLiteral(RING_GUI), {QStringLiteral("--export"), path("x.png"),
                                           QStringLiteral("--scene"), QStringLiteral("window")});
  ASSERT_TRUE(process.waitForFinished(kPatienceMs));
  const std::string said = process.readAllStandardError().toStdString();
  server.terminate();
  server.waitForFinished(kPatienceMs);
  EXPECT_EQ(process.exitCode(), 0) << said;
  EXPECT_GT(colors_in(QImage(path("x.png"))), 20U);
}

}  // namespace
}  // namespace ring::gui
