#include "experiments/strategy_numbers.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/legality.h"
#include "core/memory_model.h"

namespace ring {

StrategyNumbers count_numbers(const RingProgram& program) {
  StrategyNumbers numbers;
  std::set<int32_t> steps;
  for (const RankProgram& rank : program.rank_programs) {
    std::map<int32_t, Bytes> by_step;
    Bytes sent = 0;
    for (const Op& op : rank.ops) {
      if (op.kind != OpKind::kSend) continue;
      sent += op.bytes;
      by_step[op.step] += op.bytes;
      steps.insert(op.step);
    }
    numbers.sent_bytes = std::max(numbers.sent_bytes, sent);
    for (const auto& [step, bytes] : by_step)
      numbers.sent_per_step_bytes = std::max(numbers.sent_per_step_bytes, bytes);
    numbers.memory_bytes =
        std::max(numbers.memory_bytes, rank_bytes(program.problem, rank.storage));
  }
  numbers.steps = static_cast<int>(steps.size());
  return numbers;
}

namespace {

StrategyChoice choice_of(const Strategy& strategy, const Problem& problem, const Tuning& tuning) {
  StrategyChoice choice;
  choice.strategy = &strategy;
  choice.tuning = tuning;
  try {
    plan_exactly(problem, choice.tuning);
    choice.is_legal = true;
  } catch (const Error& error) {
    choice.refusal = error.what();
    const std::optional<Tuning> nearest = nearest_legal(problem, choice.tuning);
    if (nearest && find_strategy(nearest->strategy).name == strategy.name) {
      choice.tuning = *nearest;
      choice.is_legal = true;
    }
  }
  return choice;
}

}  // namespace

std::vector<StrategyChoice> choose_strategies(const Problem& problem, const Tuning& tuning) {
  std::vector<StrategyChoice> choices;
  Tuning asked = tuning;
  for (const Strategy& strategy : all_strategies()) {
    const bool is_given = find_strategy(tuning.strategy).name == strategy.name;
    asked.strategy = is_given ? tuning.strategy : std::string(strategy.name);
    choices.push_back(choice_of(strategy, problem, asked));
    if (strategy.variant == nullptr) continue;
    asked.strategy = strategy.variant(problem);
    if (asked.strategy.empty() || asked.strategy == tuning.strategy) continue;
    StrategyChoice variant = choice_of(strategy, problem, asked);
    variant.is_variant = true;
    if (variant.refusal.empty()) choices.push_back(std::move(variant));
  }
  return choices;
}

}  // namespace ring
