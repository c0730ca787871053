#include "sim/study.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/machine_scaling.h"
#include "core/program_check.h"
#include "core/strategy.h"

namespace ring {

int64_t estimated_ops(const ProgramSource& source, int64_t most) {
  const std::unique_ptr<RankStream> stream = source.stream(0);
  OpBatch batch;
  int64_t ops = 0;
  while (ops <= most / source.ranks() && stream->next(batch)) {
    ops += std::ssize(batch.ops);
    batch.clear();
  }
  return checked_multiply(ops, source.ranks(), "ops of the program");
}

std::shared_ptr<const StudyPlan> plan_study(const Scenario& scenario, Machine machine) {
  const int64_t ops = estimated_ops(*plan_source(scenario.problem, scenario.tuning), kMostStudyOps);
  if (ops > kMostStudyOps) {
    throw_usage(fmt::format("the program has more than {} ops", format_count(kMostStudyOps)),
                "larger blocks or fewer ranks; `ringscope simulate` takes it as it is");
  }
  auto plan = std::make_shared<StudyPlan>();
  plan->scenario = scenario;
  plan->machine = std::move(machine);
  apply(scenario.what_if, plan->machine);
  plan->program = ring::plan(scenario.problem, scenario.tuning);
  plan->bounds = lower_bounds(plan->program, plan->machine);
  plan->extrapolated = extrapolated_quantities(plan->program, plan->machine);
  return plan;
}

namespace {

SimulationOptions options_of(const StudyPlan& plan, const std::stop_token& stop) {
  SimulationOptions options = simulation_options(plan.scenario);
  options.stop = stop;
  return options;
}

}  // namespace

Study run_study(std::shared_ptr<const StudyPlan> plan, const std::stop_token& stop) {
  Study study;
  study.plan = std::move(plan);
  try {
    study.result =
        simulate(study.plan->program, study.plan->machine, options_of(*study.plan, stop));
  } catch (const Error& error) {
    // What every rank waits for is clearer as a cycle of the program, where there is one.
    if (error.kind() == ErrorKind::kRunFailed) require_sound(study.plan->program);
    throw;
  }
  return study;
}

StudyReasons explain_study(const Study& study, const std::stop_token& stop) {
  const StudyPlan& plan = *study.plan;
  StudyReasons reasons;
  reasons.interval = predicted_interval(plan.program, plan.machine, study.result.makespan_ps,
                                        options_of(plan, stop));
  WhyOptions why;
  why.with_what_if = false;
  reasons.why = explain_run(plan.program, study.result.timeline, &plan.machine, why);
  return reasons;
}

void add_what_ifs(const Study& study, StudyReasons& reasons, const std::stop_token& stop) {
  const StudyPlan& plan = *study.plan;
  WhyOptions why;
  why.what_if.simulation = options_of(plan, stop);
  reasons.why = explain_run(plan.program, study.result.timeline, &plan.machine, why);
}

}  // namespace ring
