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
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "gui/bench/frames.h"
#include "gui/bench/slider_latency.h"

namespace ring::gui {
namespace {

using nlohmann::json;

json row_of(const std::string& name, double value, double limit) {
  json row = {{"name", name}, {"value", value}, {"unit", "ms"}};
  row["target"] = limit > 0 ? json(fmt::format("<= {:g}", limit)) : json();
  row["ok"] = limit > 0 ? json(value <= limit) : json();
  return row;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
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
  return quantile(times, 0.5);
}

json rows_at(int ratio, bool is_quick) {
  json rows = json::array();
  rows.push_back(row_of(fmt::format("limit: filling the window at {}x", ratio), fill_ms(ratio), 0));
  for (const int64_t slices : {10'000, 100'000, 1'000'000}) {
    const auto start = std::chrono::steady_clock::now();
    const auto model = ring_of_slices(slices);
    const std::chrono::duration<double, std::milli> built =
        std::chrono::steady_clock::now() - start;
    const std::string what = fmt::format("{} slices at {}x", slices, ratio);
    const double limit = slices >= 1'000'000 ? 8 : 2;
    const FrameTimes times = time_frames(model, is_quick ? 20 : 60, is_quick ? 3 : 7);
    rows.push_back(row_of(what + ", panning, median", quantile(times.pan_ms, 0.5), limit));
    rows.push_back(row_of(what + ", panning, p95", quantile(times.pan_ms, 0.95), limit));
    rows.push_back(row_of(what + ", zooming, median", quantile(times.zoom_ms, 0.5), limit));
    rows.push_back(row_of(what + ", zooming, p95", quantile(times.zoom_ms, 0.95), limit));
    if (ratio == 1) rows.push_back(row_of(what + ", making ready", built.count(), 0));
  }
  if (ratio == 1) {
    const std::vector<double> latencies_ms = slider_latencies_ms(is_quick ? 20 : 120);
    rows.push_back(
        row_of("slider to picture, 8 ranks x 1Mi, median", quantile(latencies_ms, 0.5), 0));
    rows.push_back(
        row_of("slider to picture, 8 ranks x 1Mi, p95", quantile(latencies_ms, 0.95), 33));
  }
  return rows;
}

/// The ratio of device pixels is one of the whole application, so each has a process of its own.
json rows_apart(int ratio, bool is_quick, int argc, char** argv) {
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
      text = rows_at(ratio, is_quick).dump();
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
  return json::parse(text);
}

int run_main(int argc, char** argv) {
  std::string json_path;
  bool is_quick = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--quick") {
      is_quick = true;
    } else if (argument == "--json" && i + 1 < argc) {
      json_path = argv[++i];
    } else {
      throw_usage(fmt::format("ring_bench_gui: unknown argument '{}'", argument),
                  "ring_bench_gui [--json FILE] [--quick]");
    }
  }
  bool all_ok = true;
  json rows = json::array();
  for (const int ratio : {1, 2}) {
    for (json& row : rows_apart(ratio, is_quick, argc, argv)) {
      const bool has_target = !row["target"].is_null();
      fmt::print("{:<46} {:>9.3f} {:<4} {:<8} {}\n", row["name"].get<std::string>(),
                 row["value"].get<double>(), row["unit"].get<std::string>(),
                 has_target ? row["target"].get<std::string>() : "",
                 !has_target             ? ""
                 : row["ok"].get<bool>() ? "ok"
                                         : "MISSED");
      all_ok = all_ok && (!has_target || row["ok"].get<bool>());
      rows.push_back(std::move(row));
    }
    std::fflush(stdout);
  }
  if (!json_path.empty()) {
    std::ofstream file(json_path);
    file << json{{"schema", 1}, {"benchmark", "gui"}, {"rows", rows}}.dump(2) << '\n';
    if (!file.flush()) throw Error(ErrorKind::kRunFailed, "cannot write " + json_path);
  }
  return all_ok ? 0 : 1;
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
