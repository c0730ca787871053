// ring_bench_kernels: measured limits of this machine, and the CPU attention kernels against them.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/bench/peers.h"
#include "kernels/bench/suite.h"
#include "kernels/cpu/isa.h"

namespace {

constexpr const char* kUsage =
    "usage: ring_bench_kernels [--json FILE] [--svg FILE] [--rounds N] [--only TEXT]\n"
    "                          [--quick]\n"
    "  --json FILE  every figure with target and ok, as one JSON document ('-': stdout)\n"
    "  --svg FILE   roofline picture\n"
    "  --rounds N   interleaved rounds per figure, at least 7 (default 9)\n"
    "  --only TEXT  beside the limits only figures of groups with TEXT in their name\n"
    "  --quick      quarter sizes and 3 rounds; says nothing about the targets\n"
    "exit code: 0 all targets met, 1 a target missed, 2 usage, 3 wrong result\n";

struct Options {
  std::string json, svg, only;
  int rounds = 9;
  bool quick = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= argc) ring::throw_usage(word + " needs a value", kUsage);
      return argv[++i];
    };
    if (word == "--json") {
      options.json = value();
    } else if (word == "--svg") {
      options.svg = value();
    } else if (word == "--rounds") {
      options.rounds = std::atoi(value().c_str());
      if (options.rounds < 7) ring::throw_usage("--rounds must be a number of at least 7", kUsage);
    } else if (word == "--only") {
      options.only = value();
    } else if (word == "--quick") {
      options.quick = true;
    } else {
      ring::throw_usage(fmt::format("unknown option '{}'", word), kUsage);
    }
  }
  if (options.quick) options.rounds = 3;
  if (!options.svg.empty() && !options.only.empty()) {
    ring::throw_usage("--svg draws all kernels: not with --only", kUsage);
  }
  return options;
}

// The libraries read their thread counts and CPU overrides when they are loaded: start again with
// one thread each and without overrides that would make a peer slower than it is.
void restart_with_fair_peers(char** argv) {
  if (std::getenv("RING_BENCH_RESTARTED") != nullptr) return;
  setenv("RING_BENCH_RESTARTED", "1", 1);
  setenv("OMP_NUM_THREADS", "1", 1);
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_VERBOSE", "NVPL_BLAS_DEBUG_CPU_TYPE",
                           "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA"}) {
    unsetenv(name);
  }
  execv("/proc/self/exe", argv);  // carries on as it is where this fails
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

void write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return;
  }
  std::ofstream file(path);
  file << text;
  if (!file.flush()) ring::throw_usage(fmt::format("cannot write '{}'", path));
}

std::string peer_names() {
  std::string names;
  for (const ring::bench::Peer& peer : ring::bench::peers(ring::DType::kF32)) {
    if (names.find(peer.name) == std::string::npos)
      names += (names.empty() ? "" : ", ") + peer.name;
  }
  return names.empty() ? "none found" : names;
}

// The multiply-add loop is disturbed by nothing but the clock and other work.
void warn_if_not_quiet(const std::vector<ring::bench::Figure>& figures) {
  for (const ring::bench::Figure& figure : figures) {
    if (!figure.name.starts_with("limit: fp32 multiply-add")) continue;
    const bool pair = figure.unit == "x";
    if (figure.spread <= 0.05 && !(pair && figure.value < 1.8)) continue;
    fmt::print(stderr,
               "the machine was not quiet ({}: {:.3g} {}, spread {:.0f} %): compare nothing\n",
               figure.name, figure.value, figure.unit, 100.0 * figure.spread);
  }
}

int run(const Options& options) {
  ring::bench::Suite suite(options.rounds, options.quick, options.only,
                           [](const std::string& what) { fmt::print(stderr, "{}\n", what); });
  suite.run();
  const ring::bench::Context context{cpu_model(), ring::cpu::current_isa(), peer_names()};
  if (options.json != "-") {
    fmt::print("# {}, {}, peers: {}\n{}", context.cpu, context.isa, context.peers,
               ring::bench::as_table(suite.figures()));
  }
  if (!options.json.empty()) {
    write_file(options.json, ring::bench::as_json(context, suite.figures()));
  }
  if (!options.svg.empty()) write_file(options.svg, ring::bench::as_svg(suite.roofline()));
  warn_if_not_quiet(suite.figures());
  for (const ring::bench::Figure& figure : suite.figures()) {
    if (!figure.ok()) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    restart_with_fair_peers(argv);
    return run(options);
  } catch (const ring::Error& error) {
    fmt::print(stderr, "ring_bench_kernels: {}\n{}\n", error.what(), error.hint());
    return ring::exit_code(error.kind());
  }
}
