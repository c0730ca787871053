#include "core/legality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/choices.h"
#include "core/strategy.h"

namespace ring {
namespace {

bool can_be_planned(const Problem& problem, const Tuning& tuning) {
  try {
    plan_exactly(problem, tuning);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The divisors of the ranks and of the KV heads, those nearest to `wanted` first.
std::vector<int64_t> divisors_near(int64_t ranks, int64_t kv_heads, int64_t wanted) {
  std::vector<int64_t> divisors;
  for (int64_t divisor = 1; divisor <= std::max(ranks, kv_heads); ++divisor) {
    if (ranks % divisor == 0 || kv_heads % divisor == 0) divisors.push_back(divisor);
  }
  std::stable_sort(divisors.begin(), divisors.end(), [wanted](int64_t a, int64_t b) {
    return std::abs(a - wanted) < std::abs(b - wanted);
  });
  return divisors;
}

/// The number behind the colon; 0: there is none.
int64_t given_number(const Tuning& tuning) {
  const size_t colon = tuning.strategy.find(':');
  const int64_t given =
      colon == std::string::npos ? 0 : std::atoll(tuning.strategy.c_str() + colon + 1);
  return std::max<int64_t>(given, 0);
}

/// Splits the ranks in about as many groups as each has members.
int64_t middle_number(int ranks) {
  int64_t root = 1;
  while ((root + 1) * (root + 1) <= ranks) ++root;
  return root;
}

/// The same strategy with other parameters, the likeliest first: another number where one was
/// given.
std::vector<Tuning> with_other_parameters(const Problem& problem, const Tuning& tuning) {
  const std::string name = tuning.strategy.substr(0, tuning.strategy.find(':'));
  const int64_t given = given_number(tuning);
  std::vector<std::string> texts;
  if (given == 0) texts.push_back(name);
  if (!find_strategy(name).parameter.empty()) {
    const int64_t wanted = given > 0 ? given : middle_number(tuning.ranks);
    for (const int64_t number : divisors_near(tuning.ranks, problem.kv_heads, wanted)) {
      for (const char* rest : {"", ",uneven", ",repeat"})
        texts.push_back(fmt::format("{}:{}{}", name, number, rest));
    }
    texts.push_back(name + ":uneven");
    texts.push_back(name + ":repeat");
  }
  if (given > 0) texts.push_back(name);
  std::vector<Tuning> found(texts.size(), tuning);
  for (size_t i = 0; i < texts.size(); ++i) found[i].strategy = texts[i];
  return found;
}

/// The same kind without a parameter, that of the nearest name, and what is always possible.
std::vector<std::string> other_partitions(const Problem& problem, const Tuning& tuning) {
  const std::string kind(kind_of(tuning.partition));
  std::vector<std::string_view> known;
  const std::vector<ChoiceForm> forms = partition_forms(problem.seq_len(), tuning.ranks);
  for (const ChoiceForm& form : forms) known.push_back(form.kind);
  std::vector<std::string> texts{kind};
  const std::string nearest = nearest_spelling(kind, known.data(), static_cast<int>(known.size()));
  if (!nearest.empty()) texts.push_back(nearest);
  texts.insert(texts.end(), {"contiguous", "zigzag"});
  return texts;
}

std::vector<Tuning> on_other_ranks(const Tuning& tuning) {
  constexpr int kMostTries = 64;
  std::vector<Tuning> found;
  for (int distance = 1; distance <= std::min(kMostTries, tuning.ranks); ++distance) {
    for (const int ranks : {tuning.ranks - distance, tuning.ranks + distance}) {
      if (ranks < 1) continue;
      found.push_back(tuning);
      found.back().ranks = ranks;
    }
  }
  found.push_back(tuning);
  found.back().ranks = 1;
  return found;
}

}  // namespace

std::optional<Tuning> nearest_legal(const Problem& problem, const Tuning& tuning) {
  std::vector<Tuning> candidates{tuning};
  const auto add_variants = [&candidates, &problem](const Tuning& base) {
    candidates.push_back(base);
    for (const Tuning& other : with_other_parameters(problem, base)) candidates.push_back(other);
  };
  add_variants(tuning);
  Tuning plain = tuning;
  for (const std::string& partition : other_partitions(problem, tuning)) {
    plain.partition = partition;
    add_variants(plain);
  }
  plain.partition = tuning.partition;
  plain.is_deterministic = false;
  add_variants(plain);
  for (const Tuning& other : on_other_ranks(plain)) candidates.push_back(other);
  Tuning ring = tuning;
  const bool moves_queries = tuning.strategy == "tree-decode";
  for (const bool is_deterministic : {tuning.is_deterministic, false}) {
    ring.is_deterministic = is_deterministic;
    for (const char* strategy : {moves_queries ? "pass-q" : "pass-kv", "pass-kv"}) {
      for (const char* partition : {tuning.partition.c_str(), "zigzag"}) {
        ring.strategy = strategy;
        ring.partition = partition;
        candidates.push_back(ring);
      }
    }
  }
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [&](const Tuning& t) { return can_be_planned(problem, t); });
  if (found == candidates.end()) return std::nullopt;
  return *found;
}

std::string options_text(const Tuning& from, const Tuning& to) {
  std::vector<std::string> options;
  if (to.strategy != from.strategy) options.push_back("--strategy " + to.strategy);
  if (to.ranks != from.ranks) options.push_back(fmt::format("--ranks {}", to.ranks));
  if (to.partition != from.partition) options.push_back("--partition " + to.partition);
  if (from.is_deterministic && !to.is_deterministic) options.push_back("no --deterministic");
  return fmt::format("{}", fmt::join(options, " "));
}

Error refusal_of(const Problem& problem, const Tuning& tuning, const Error& error) {
  const bool is_choice =
      error.kind() == ErrorKind::kUsage || error.kind() == ErrorKind::kUnavailable;
  if (!is_choice) return error;
  std::optional<Tuning> nearest;
  try {
    nearest = nearest_legal(problem, tuning);
  } catch (const Error&) {
    return error;  // The strategy has no name that is known.
  }
  if (!nearest) return error;
  std::string hint = error.hint();
  if (!hint.empty()) hint += "; ";
  return Error(error.kind(), error.what(),
               hint + "nearest legal: " + options_text(tuning, *nearest));
}

}  // namespace ring
