#include "gui/bench/slider_latency.h"

#include <QCoreApplication>
#include <QEvent>
#include <QSlider>
#include <chrono>

#include "core/error.h"
#include "core/formats/example_scenarios.h"
#include "gui/docks/slider_box.h"
#include "gui/window/headless.h"
#include "gui/window/main_window.h"

namespace ring::gui {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(20);

/// Tells when the timeline was drawn with the newest prediction.
class PaintWatch final : public QObject {
 public:
  explicit PaintWatch(MainWindow& window) : window_(window) {
    window_.timeline().installEventFilter(this);
  }
  bool is_painted() const { return is_painted_; }
  void expect(const Scenario& scenario) {
    wanted_ = scenario;
    is_painted_ = false;
  }
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() != QEvent::Paint) return false;
    const auto study = window_.workspace().study();
    const bool is_new = study && is_same(study->plan->scenario, wanted_) &&
                        window_.timeline().model() == window_.workspace().model().get();
    is_painted_ = is_painted_ || is_new;
    return false;
  }

 private:
  MainWindow& window_;
  Scenario wanted_;
  bool is_painted_ = false;
};

Scenario long_context() {
  Scenario scenario = scenario_of(example_scenarios().front());
  scenario.machine = "hgx-h100";
  scenario.problem.mask = Mask::causal(1 << 20);
  scenario.tuning.ranks = 8;
  scenario.tuning.block_tokens = 4096;
  return scenario;
}

}  // namespace

std::vector<double> slider_latencies_ms(int moves) {
  MainWindow window(long_context());
  window.resize(1600, 900);
  window.show();
  wait_until_settled(window);
  PaintWatch watch(window);
  std::vector<double> latencies;
  for (int i = 0; i < moves; ++i) {
    const bool is_depth = i / 12 % 2 == 0;
    QSlider& slider = *window.parameters().number(is_depth ? "depth" : "bandwidth").slider();
    const int position =
        slider.minimum() + 1 +
        (slider.value() - slider.minimum() + i % 5) % (slider.maximum() - slider.minimum());
    if (position == slider.value()) continue;
    const auto start = Clock::now();
    slider.setSliderDown(true);
    slider.setSliderPosition(position);
    watch.expect(window.workspace().scenario());
    while (!watch.is_painted()) {
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents, 1);
      if (Clock::now() - start > kPatience) {
        throw Error(ErrorKind::kWrongResult, "the picture did not follow the slider");
      }
    }
    latencies.push_back(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
    slider.setSliderDown(false);
    // A hand rests between moves; the next is not held back by the frame of this one.
    const auto rest = Clock::now() + std::chrono::milliseconds(20);
    while (Clock::now() < rest) QCoreApplication::processEvents(QEventLoop::AllEvents, 5);
  }
  return latencies;
}

}  // namespace ring::gui
