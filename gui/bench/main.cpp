// ring_bench_gui: frame times of the timeline at 1600 x 900, with one and with two device pixels.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QApplication>
#include <QColor>
#include <QImage>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/formats/bench_rows.h"
#include "gui/bench/frames.h"
#include "gui/bench/slider_latency.h"
#include "sim/replicas.h"

namespace ring::gui {
namespace {

BenchRow row_of(const std::string& name, double value, double limit) {
  return limit > 0 ? row_at_most(name, value, "ms", limit) : BenchRow{name, value, "ms", {}, true};
}

double share_of(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return quantile(values, share);
}

/// Writing every pixel of the window once, the least that a new picture takes.
double fill_ms(int ratio) {
  QImage window(1600 * ratio, 900 * ratio, QImage::Format_RGB32);
  std::vector<double> times;
  for (int i = 0; i < 15; ++i) {
    const auto start = std::chrono::steady_clock::now();
    window.fill(QColor(i, i, i));
    const std::chrono::duration<double, std::milli> passed =
        std::chrono::steady_clock::now() - start;
    times.push_back(passed.count());
  }
  return share_of(times, 0.5);
}

std::vector<BenchRow> rows_at(int ratio, bool is_quick) {
  std::vector<BenchRow> rows;
  rows.push_back(row_of(fmt::format("limit: filling the window at {}x", ratio), fill_ms(ratio), 0));
  for (const int64_t slices : {10'000, 100'000, 1'000'000}) {
    const auto start = std::chrono::steady_clock::now();
    const auto model = ring_of_slices(slices);
    const std::chrono::duration<double, std::milli> built =
        std::chrono::steady_clock::now() - start;
    const std::string what = fmt::format("{} slices at {}x", slices, ratio);
    const double limit = slices >= 1'000'000 ? 8 : 2;
    const FrameTimes times = time_frames(model, is_quick ? 20 : 60, is_quick ? 3 : 7);
    rows.push_back(row_of(what + ", panning, median", share_of(times.pan_ms, 0.5), limit));
    rows.push_back(row_of(what + ", panning, p95", share_of(times.pan_ms, 0.95), limit));
    rows.push_back(row_of(what + ", zooming, median", share_of(times.zoom_ms, 0.5), limit));
    rows.push_back(row_of(what + ", zooming, p95", share_of(times.zoom_ms, 0.95), limit));
    if (ratio == 1) rows.push_back(row_of(what + ", making ready", built.count(), 0));
  }
  if (ratio == 1) {
    const std::vector<double> latencies_ms = slider_latencies_ms(is_quick ? 20 : 120);
    rows.push_back(
        row_of("slider to picture, 8 ranks x 1Mi, median", share_of(latencies_ms, 0.5), 0));
    rows.push_back(
        row_of("slider to picture, 8 ranks x 1Mi, p95", share_of(latencies_ms, 0.95), 33));
  }
  return rows;
}

/// The ratio of device pixels is one of the whole application, so each has a process of its own.
std::vector<BenchRow> rows_apart(int ratio, bool is_quick, int argc, char** argv) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw Error(ErrorKind::kRunFailed, "cannot make a pipe");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    int status = 0;
    std::string text;
    try {
      qputenv("QT_SCALE_FACTOR", QByteArray::number(ratio));
      if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
      const QApplication application(argc, argv);
      text = bench_json("gui", rows_at(ratio, is_quick));
    } catch (const Error& error) {
      fmt::print(stderr, "{}\n", error.what());
      status = exit_code(error.kind());
    }
    for (size_t done = 0; status == 0 && done < text.size();) {
      const ssize_t written = write(ends[1], text.data() + done, text.size() - done);
      if (written <= 0) status = 1;
      done += static_cast<size_t>(std::max<ssize_t>(written, 0));
    }
    _exit(status);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = read(ends[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(WIFEXITED(status) && WEXITSTATUS(status) == 3 ? ErrorKind::kWrongResult
                                                              : ErrorKind::kRunFailed,
                fmt::format("the timeline could not be timed at {}x", ratio));
  }
  return parse_bench_rows(text);
}

int run_main(int argc, char** argv) {
  const BenchOptions options = bench_options(argc, argv, "ring_bench_gui");
  std::vector<BenchRow> rows;
  for (const int ratio : {1, 2}) {
    for (BenchRow& row : rows_apart(ratio, options.is_quick, argc, argv)) {
      fmt::print("{}", bench_line(row));
      rows.push_back(std::move(row));
    }
    std::fflush(stdout);
  }
  return finish_bench(options, "gui", rows);
}

}  // namespace
}  // namespace ring::gui

int main(int argc, char** argv) {
  try {
    return ring::gui::run_main(argc, argv);
  } catch (const ring::Error& error) {
    fmt::print(stderr, "{}\n{}\n", error.what(), error.hint());
    return ring::exit_code(error.kind());
  }
}
