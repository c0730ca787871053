#include "sim/simulator.h"

#include "sim/engine.h"
#include "sim/folding.h"

namespace ring {

namespace {

/// A materialized program with what its streams cannot say.
class KnownProgram : public ProgramSource {
 public:
  KnownProgram(const RingProgram& program, bool may_fold)
      : program_(program),
        source_(stream_of(program)),
        rotation_(may_fold ? find_rotation(program) : 0) {}

  int ranks() const override { return source_->ranks(); }
  int lanes() const override { return source_->lanes(); }
  RankStorage storage(int rank) const override { return source_->storage(rank); }
  std::unique_ptr<RankStream> stream(int rank) const override { return source_->stream(rank); }
  std::string name() const override { return program_.name; }
  const Problem* problem() const override {
    return program_.has_attention ? &program_.problem : nullptr;
  }
  int rotation() const override { return rotation_; }

 private:
  const RingProgram& program_;
  std::unique_ptr<ProgramSource> source_;
  int rotation_;
};

}  // namespace

SimulationResult simulate(const RingProgram& program, const Machine& machine,
                          const SimulationOptions& options) {
  const bool may_fold =
      options.allow_folding && !options.keep_timeline && !options.noise_seed.has_value();
  return simulate(KnownProgram(program, may_fold), machine, options);
}

SimulationResult simulate(const ProgramSource& source, const Machine& machine,
                          const SimulationOptions& options) {
  SimulationResult result;
  if (const auto fold = find_fold(source, machine, options)) {
    const auto folded = fold_source(source, fold->period);
    result = SimulationEngine(*folded, source.problem(), machine, options, &*fold).run();
  } else {
    result = SimulationEngine(source, source.problem(), machine, options, nullptr).run();
  }
  result.timeline.name = source.name();
  return result;
}

}  // namespace ring
