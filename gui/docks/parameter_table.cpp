#include "gui/docks/parameter_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/choices.h"
#include "core/error.h"

namespace ring::gui {

std::string_view title(ParameterGroup group) {
  switch (group) {
    case ParameterGroup::kProblem:
      return "Problem";
    case ParameterGroup::kMachine:
      return "Machine";
    case ParameterGroup::kTuning:
      return "Strategy and tuning";
    case ParameterGroup::kWhatIf:
      return "What if";
  }
  return "";
}

namespace {

constexpr int64_t kMostTokens = int64_t{1} << 40;

/// Four whole numbers an octave: 1024, 1280, 1536, 1792, 2048 ... and both ends.
std::vector<double> octaves(double low, double high) {
  std::vector<double> stops{low};
  for (double power = 1; power <= high; power *= 2) {
    for (const double quarter : {1.0, 1.25, 1.5, 1.75}) {
      const double stop = power * quarter;
      if (stop > low && stop < high && stop == std::floor(stop)) stops.push_back(stop);
    }
  }
  if (high > low) stops.push_back(high);
  return stops;
}

std::vector<double> whole_numbers(int low, int high) {
  std::vector<double> stops;
  for (int value = low; value <= high; ++value) stops.push_back(value);
  return stops;
}

/// Twelve factors a decade, 1 among them.
std::vector<double> factors(double low, double high) {
  std::vector<double> stops;
  const int first = static_cast<int>(std::lround(12 * std::log10(low)));
  const int last = static_cast<int>(std::lround(12 * std::log10(high)));
  for (int step = first; step <= last; ++step) {
    const double factor = std::pow(10, step / 12.0);
    stops.push_back(std::stod(fmt::format("{:.3g}", factor)));
  }
  return stops;
}

double tokens_of(int64_t count) { return static_cast<double>(count); }

int64_t whole(double value, double most = static_cast<double>(kMostTokens)) {
  if (!(value >= 0 && value <= most)) {
    throw_usage(fmt::format("{} is out of range", value),
                fmt::format("0 to {}", static_cast<int64_t>(most)));
  }
  return std::llround(value);
}

int small(double value) { return static_cast<int>(whole(value, 1 << 24)); }

double parse_whole(std::string_view text) {
  return static_cast<double>(parse_count(text, "the number"));
}
std::string format_whole(double value) { return format_count(std::llround(value)); }

/// Plain numbers, "2" or "0.5".
double parse_number(std::string_view text) {
  const std::string copy(text);
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(copy, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || copy.find_first_not_of(' ', used) != std::string::npos ||
      !std::isfinite(value)) {
    throw_usage(fmt::format("'{}' is not a number", text), "such as 2 or 0.5");
  }
  return value;
}
double parse_factor(std::string_view text) {
  const double value = parse_number(text);
  if (value <= 0) throw_usage(fmt::format("'{}' must be above 0", text));
  return value;
}
std::string format_factor(double value) { return fmt::format("{:.3g}", value); }

double shard_tokens(const Scenario& scenario) {
  return std::max(
      1.0, std::ceil(tokens_of(scenario.problem.seq_len()) / std::max(1, scenario.tuning.ranks)));
}

double jitter_percent(const Scenario& scenario) {
  return scenario.what_if.jitter.value_or(0) * 100;
}

/// Jitter is shown as one noisy run, so it brings a seed along; without jitter there is none.
void set_jitter(Scenario& scenario, double percent) {
  if (!(percent >= 0 && percent <= 200)) {
    throw_usage(fmt::format("a jitter of {} % is out of range", percent), "0 to 200 %");
  }
  if (percent == 0) {
    scenario.what_if.jitter.reset();
    scenario.noise_seed.reset();
    return;
  }
  scenario.what_if.jitter = percent / 100;
  if (!scenario.noise_seed) scenario.noise_seed = 1;
}

int slow_rank(const Scenario& scenario) {
  return scenario.slow_ranks.empty() ? 0 : scenario.slow_ranks.front().rank;
}
double slow_factor(const Scenario& scenario) {
  return scenario.slow_ranks.empty() ? 1 : scenario.slow_ranks.front().factor;
}
void set_slow(Scenario& scenario, int rank, double factor) {
  if (scenario.slow_ranks.empty()) scenario.slow_ranks.emplace_back();
  scenario.slow_ranks.front() = {rank, factor};
  if (factor == 1 && rank == 0) scenario.slow_ranks.erase(scenario.slow_ranks.begin());
}

std::vector<NumberParameter> problem_parameters() {
  constexpr auto kGroup = ParameterGroup::kProblem;
  return {
      {"seq", "Sequence", "tokens", "Tokens of the whole sequence, over all ranks", kGroup,
       [](const Scenario& s) { return tokens_of(s.problem.seq_len()); },
       [](Scenario& s, double v) {
         s.problem = with_seq_len(s.problem, std::max<int64_t>(1, whole(v)));
       },
       [](const Scenario&) { return octaves(1024, 16.0 * 1024 * 1024); }, parse_whole,
       format_whole},
      {"batch",
       "Batch",
       "",
       "Sequences computed together",
       kGroup,
       [](const Scenario& s) { return tokens_of(s.problem.batch); },
       [](Scenario& s, double v) { s.problem.batch = std::max<int64_t>(1, whole(v)); },
       [](const Scenario&) { return octaves(1, 64); },
       parse_whole,
       format_whole,
       {},
       false},
      {"heads",
       "Query heads",
       "",
       "Heads of Q",
       kGroup,
       [](const Scenario& s) { return tokens_of(s.problem.heads); },
       [](Scenario& s, double v) {
         s.problem.heads = std::max<int64_t>(1, whole(v));
         s.model.clear();
       },
       [](const Scenario&) { return octaves(1, 128); },
       parse_whole,
       format_whole,
       {},
       false},
      {"kv_heads",
       "KV heads",
       "",
       "Heads of K and V; they divide the query heads",
       kGroup,
       [](const Scenario& s) { return tokens_of(s.problem.kv_heads); },
       [](Scenario& s, double v) {
         s.problem.kv_heads = std::max<int64_t>(1, whole(v));
         s.model.clear();
       },
       [](const Scenario& s) {
         std::vector<double> divisors;
         for (int64_t d = 1; d <= std::min<int64_t>(s.problem.heads, 4096); ++d) {
           if (s.problem.heads % d == 0) divisors.push_back(tokens_of(d));
         }
         return divisors;
       },
       parse_whole,
       format_whole,
       {},
       false},
      {"head_dim",
       "Head dim",
       "",
       "Values of Q and K, and of V where it is alike",
       kGroup,
       [](const Scenario& s) { return tokens_of(s.problem.head_dim); },
       [](Scenario& s, double v) {
         const bool is_alike = s.problem.head_dim == s.problem.head_dim_v;
         s.problem.head_dim = std::max<int64_t>(1, whole(v));
         if (is_alike) s.problem.head_dim_v = s.problem.head_dim;
         s.model.clear();
       },
       [](const Scenario&) { return std::vector<double>{16, 32, 64, 80, 96, 128, 160, 192, 256}; },
       parse_whole,
       format_whole,
       {},
       false},
  };
}

std::vector<NumberParameter> tuning_parameters() {
  constexpr auto kGroup = ParameterGroup::kTuning;
  return {
      {"ranks", "Ranks", "", "Members of the ring", kGroup,
       [](const Scenario& s) { return static_cast<double>(s.tuning.ranks); },
       [](Scenario& s, double v) {
         s.tuning.ranks = std::max(1, small(v));
         std::erase_if(s.slow_ranks, [&](const auto& slow) { return slow.rank >= s.tuning.ranks; });
         std::erase_if(s.late_starts,
                       [&](const auto& late) { return late.rank >= s.tuning.ranks; });
       },
       [](const Scenario&) { return whole_numbers(1, 64); }, parse_whole, format_whole},
      {"block", "Block size", "tokens", "KV tokens that one attention op works on", kGroup,
       [](const Scenario& s) { return tokens_of(s.tuning.block_tokens); },
       [](Scenario& s, double v) { s.tuning.block_tokens = std::max<int64_t>(1, whole(v)); },
       [](const Scenario& s) { return octaves(16, std::max(32.0, shard_tokens(s))); }, parse_whole,
       format_whole},
      {"blocks_per_message", "Blocks per message", "", "Blocks that travel together", kGroup,
       [](const Scenario& s) { return tokens_of(s.tuning.blocks_per_message); },
       [](Scenario& s, double v) { s.tuning.blocks_per_message = whole(v); },
       [](const Scenario& s) {
         const double blocks = std::ceil(shard_tokens(s) / tokens_of(s.tuning.block_tokens));
         std::vector<double> stops = octaves(1, std::max(2.0, blocks));
         stops.insert(stops.begin(), 0);
         return stops;
       },
       parse_whole, format_whole, "whole shard"},
      {"depth", "Pipeline depth", "", "Receive buffers of a rank, one message each", kGroup,
       [](const Scenario& s) { return static_cast<double>(s.tuning.pipeline_depth); },
       [](Scenario& s, double v) { s.tuning.pipeline_depth = std::max(1, small(v)); },
       [](const Scenario&) { return whole_numbers(1, 16); }, parse_whole, format_whole},
      {"lanes",
       "Lanes",
       "",
       "Send lanes and receive lanes of a rank",
       kGroup,
       [](const Scenario& s) { return static_cast<double>(s.tuning.lanes); },
       [](Scenario& s, double v) { s.tuning.lanes = std::max(1, small(v)); },
       [](const Scenario&) { return whole_numbers(1, 8); },
       parse_whole,
       format_whole,
       {},
       false},
  };
}

std::vector<NumberParameter> what_if_parameters() {
  constexpr auto kGroup = ParameterGroup::kWhatIf;
  return {
      {"bandwidth", "Link bandwidth", "x", "All links that many times as fast", kGroup,
       [](const Scenario& s) { return s.what_if.bandwidth; },
       [](Scenario& s, double v) { s.what_if.bandwidth = v; },
       [](const Scenario&) { return factors(0.1, 10); }, parse_factor, format_factor},
      {"latency", "Link latency", "x", "All latencies that many times as long", kGroup,
       [](const Scenario& s) { return s.what_if.latency; },
       [](Scenario& s, double v) { s.what_if.latency = v; },
       [](const Scenario&) { return factors(0.1, 10); }, parse_factor, format_factor},
      {"jitter", "Jitter", "%", "Ops take shorter or longer by chance; shows one such run", kGroup,
       jitter_percent, set_jitter, [](const Scenario&) { return whole_numbers(0, 50); },
       parse_number, format_factor, "none"},
      {"seed", "Jitter seed", "", "Another seed, another run", kGroup,
       [](const Scenario& s) { return tokens_of(s.noise_seed.value_or(0)); },
       [](Scenario& s, double v) {
         s.noise_seed = whole(v);
         if (*s.noise_seed == 0) s.noise_seed.reset();
       },
       [](const Scenario&) { return whole_numbers(0, 40); }, parse_whole, format_whole, "no noise",
       false},
      {"slow_rank", "Slow rank", "", "Which rank computes slowly", kGroup,
       [](const Scenario& s) { return static_cast<double>(slow_rank(s)); },
       [](Scenario& s, double v) {
         set_slow(s, std::clamp(small(v), 0, s.tuning.ranks - 1), slow_factor(s));
       },
       [](const Scenario& s) { return whole_numbers(0, std::max(0, s.tuning.ranks - 1)); },
       parse_whole, format_whole},
      {"slow_factor", "Its slowness", "x",
       "Computation of the slow rank takes so many times as long", kGroup, slow_factor,
       [](Scenario& s, double v) { set_slow(s, slow_rank(s), v); },
       [](const Scenario&) {
         std::vector<double> stops;
         for (int step = 20; step <= 80; ++step) stops.push_back(step / 20.0);
         return stops;
       },
       parse_factor, format_factor},
  };
}

std::vector<NumberParameter> all_parameters() {
  std::vector<NumberParameter> all = problem_parameters();
  for (auto& list : {tuning_parameters(), what_if_parameters()}) {
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

}  // namespace

std::span<const NumberParameter> number_parameters() {
  static const std::vector<NumberParameter> kParameters = all_parameters();
  return kParameters;
}

const NumberParameter& number_parameter(std::string_view id) {
  const auto all = number_parameters();
  const auto at = std::find_if(all.begin(), all.end(), [id](const NumberParameter& parameter) {
    return parameter.id == id;
  });
  RING_ASSERT(at != all.end());
  return *at;
}

}  // namespace ring::gui
