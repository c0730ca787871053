#include <fmt/format.h>

#include "core/paths.h"
#include "experiments/json.h"
#include "experiments/table.h"
#include "experiments/verb.h"
#include "kernels/cpu/isa.h"
#include "kernels/host_facts.h"

namespace ring {

namespace {

std::string plural(int count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

std::string cache_text(const std::vector<CacheFact>& caches) {
  std::string text;
  for (const CacheFact& cache : caches) {
    if (!text.empty()) text += ", ";
    text += fmt::format("L{} {}", cache.level, format_bytes(cache.bytes));
    if (cache.shared_by > 1) text += fmt::format(" shared by {} cores", cache.shared_by);
  }
  return text.empty() ? "unknown" : text;
}

std::string isa_text() {
  std::string others;
  for (const std::string& isa : cpu::runnable_isas()) {
    if (isa != cpu::current_isa()) others += (others.empty() ? "" : ", ") + isa;
  }
  return others.empty() ? cpu::current_isa()
                        : fmt::format("{} (could use {})", cpu::current_isa(), others);
}

Json host_json(const HostFacts& host) {
  Json caches = Json::array();
  for (const CacheFact& cache : host.caches) {
    caches.push_back(
        {{"level", cache.level}, {"bytes", cache.bytes}, {"shared_by_cores", cache.shared_by}});
  }
  return {{"processor", host.processor},
          {"packages", host.packages},
          {"cores", host.cores},
          {"threads", host.threads},
          {"allowed_threads", host.allowed_threads},
          {"numa_nodes", host.numa_nodes},
          {"caches", caches},
          {"isa", cpu::current_isa()},
          {"runnable_isas", cpu::runnable_isas()},
          {"memory_bytes", host.memory_bytes},
          {"available_bytes", host.available_bytes}};
}

class EnvVerb final : public Verb {
 public:
  std::string_view name() const override { return "env"; }
  std::string_view summary() const override { return "Show this machine and what was found on it"; }
  bool has_partial_results() const override { return false; }
  void declare(VerbOptions&) override {}

  int run(VerbContext& context) override {
    const HostFacts host = detect_host();
    const std::vector<PartFact> parts = detect_parts();
    if (context.console.is_json()) {
      print_json(context.console, host, parts);
    } else {
      print_text(context.console, host, parts);
    }
    return 0;
  }

 private:
  static void print_json(Console& console, const HostFacts& host,
                         const std::vector<PartFact>& parts) {
    Json list = Json::array();
    for (const PartFact& part : parts) {
      list.push_back({{"name", part.name}, {"found", part.is_found}, {"text", part.text}});
    }
    const std::string profile = default_machine_path();
    Json document = json_document("env");
    document["host"] = host_json(host);
    document["parts"] = list;
    document["machine_profile"] = profile;
    document["is_calibrated"] = file_exists(profile);
    console.print_document(document);
  }

  static void print_text(Console& console, const HostFacts& host,
                         const std::vector<PartFact>& parts) {
    Table table;
    table.column("", Align::kLeft).column("", Align::kLeft);
    table.row({"processor", host.processor});
    table.row(
        {"cores", fmt::format("{} with {}, {}, {}", plural(host.cores, "core"),
                              plural(host.threads, "thread"), plural(host.packages, "package"),
                              plural(host.numa_nodes, "NUMA node"))});
    table.row({"caches", cache_text(host.caches)});
    table.row({"kernels use", isa_text()});
    table.row({"memory", fmt::format("{}, {} available", format_bytes(host.memory_bytes),
                                     format_bytes(host.available_bytes))});
    for (const PartFact& part : parts) {
      table.row({part.name, {part.text, part.is_found ? Tone::kGood : Tone::kDim}});
    }
    const std::string profile = default_machine_path();
    table.row({"profile", file_exists(profile)
                              ? Cell(profile, Tone::kGood)
                              : Cell("not calibrated: run ringscope calibrate", Tone::kWarn)});
    console.print(table.text(console.style()));
  }
};

}  // namespace

std::unique_ptr<Verb> make_env_verb() { return std::make_unique<EnvVerb>(); }

}  // namespace ring
