// Entry point of a libFuzzer target: feeds bytes to one reader, which may refuse them with an Error
// and may do nothing worse. RING_FUZZ_READER names the function below that is built.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "core/error.h"
#include "core/formats/chakra.h"
#include "core/formats/gzip.h"
#include "core/formats/hf_config.h"
#include "core/formats/import/bench_log.h"
#include "core/formats/import/kernel_trace.h"
#include "core/formats/import/link_curve.h"
#include "core/formats/import/link_log.h"
#include "core/formats/import/nccl_info_log.h"
#include "core/formats/import/nccl_tests_log.h"
#include "core/formats/import/nccl_xml.h"
#include "core/formats/import/nsys_kernels.h"
#include "core/formats/import/shape_of.h"
#include "core/formats/import/topo_matrix.h"
#include "core/formats/import/trace_run.h"
#include "core/formats/machine_json.h"
#include "core/formats/run_json.h"
#include "core/formats/scenario_toml.h"
#include "core/program_text.h"
#include "core/topology_file.h"

namespace ring {
namespace {

struct Readers {
  static void fuzz_topo_matrix(const std::string& text) {
    Findings findings;
    topology_toml(shape_of(parse_topo_matrix(text, "f"), "f", {}, findings));
  }
  static void fuzz_nccl_topology(const std::string& text) {
    Findings findings;
    topology_toml(shape_of(parse_nccl_topology(text, "f"), "f", {}, findings));
  }
  static void fuzz_topology(const std::string& text) {
    const std::string written = topology_toml(parse_topology(text, "f"));
    RING_ASSERT(topology_toml(parse_topology(written, "f")) == written);
  }
  static void fuzz_program(const std::string& text) {
    const std::string written = program_text(parse_program(text));
    RING_ASSERT(program_text(parse_program(written)) == written);
  }
  static void fuzz_chakra(const std::string& text) { program_text(parse_chakra({text}, {"f"})); }
  static void fuzz_nccl_graphs(const std::string& text) { parse_nccl_graphs(text, "f"); }
  static void fuzz_nccl_tests(const std::string& text) {
    link_curves_csv(link_curves(parse_nccl_tests(text, "f")));
  }
  static void fuzz_nccl_info(const std::string& text) { parse_nccl_info(text, "f"); }
  static void fuzz_p2p_bandwidth(const std::string& text) {
    link_curves_csv(link_curves(parse_p2p_bandwidth(text, "f")));
  }
  static void fuzz_nvbandwidth(const std::string& text) {
    link_curves_csv(link_curves(parse_nvbandwidth(text, "f")));
  }
  static void fuzz_perftest(const std::string& text) {
    link_curves_csv(link_curves(parse_perftest(text, "f")));
  }
  static void fuzz_superbench(const std::string& text) { parse_superbench(text, "f"); }
  static void fuzz_pair_bandwidth(const std::string& text) { parse_pair_bandwidth(text, "f"); }
  static void fuzz_hf_config(const std::string& text) { parse_hf_config(text, "f"); }
  static void fuzz_nsys_kernels(const std::string& text) { parse_nsys_kernels(text, "f"); }
  static void fuzz_attention_bench(const std::string& text) { parse_attention_bench(text, "f"); }
  static void fuzz_training_bench(const std::string& text) { parse_training_bench(text, "f"); }
  static void fuzz_run(const std::string& text) {
    const std::string written = run_json(parse_run(text, "f"));
    RING_ASSERT(run_json(parse_run(written, "f")) == written);
  }
  static void fuzz_machine(const std::string& text) {
    const std::string written = machine_json(parse_machine(text, "f"));
    RING_ASSERT(machine_json(parse_machine(written, "f")) == written);
  }
  static void fuzz_gunzip(const std::string& text) { gunzip(text, "f", int64_t{1} << 24); }
  static void fuzz_kernel_trace(const std::string& text) {
    std::istringstream input(text);
    const std::string written = run_json(run_of_traces({parse_kernel_trace(input, "f")}, {"f"}));
    RING_ASSERT(run_json(parse_run(written, "f")) == written);
  }
  static void fuzz_scenario(const std::string& text) {
    scenario_toml(parse_scenario(
        text, "f", [](const std::string& model) -> ModelShape { throw_usage("no " + model); }));
  }
};

}  // namespace
}  // namespace ring

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    ring::Readers::RING_FUZZ_READER(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const ring::Error& error) {
    RING_ASSERT(error.kind() == ring::ErrorKind::kUsage);
  }
  return 0;
}
