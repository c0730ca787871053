// Interleaved timing: every contender once per round, so that drift of the clock hits all alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/bench/quiet.h"

namespace ring::bench {

struct Contender {
  std::string name;
  std::function<void()> run;
};

struct Timing {
  std::vector<std::vector<double>> seconds;  // per call, [contender][counted round]
  int rounds = 0;                            // run in all
  bool quiet = false;                        // whether only quiet rounds are counted
};

// Times rounds until `rounds` of them were quiet.
class Timer {
 public:
  explicit Timer(int rounds) : rounds_(rounds) {}

  // After one untimed round. A contender runs for 20 ms or once, as many calls as that takes; with
  // its caches warm, as in a ring. A run is quiet when the probe is before and after it; a run that
  // is not is tried again, four times at most. When fewer than 7 rounds, or fewer than asked for,
  // are quiet after half a minute, all count.
  Timing time(const std::vector<Contender>& contenders) { return time(contenders, one_core_); }
  Timing time(const std::vector<Contender>& contenders, QuietProbe& probe);

 private:
  struct Run {
    double seconds = 0.0;
    bool quiet = false;
  };
  Run run_quietly(const Contender& contender, int calls, QuietProbe& probe);
  bool probe_is_quiet(QuietProbe& probe);

  int rounds_;
  QuietProbe one_core_;
  std::vector<double> ratios_;  // of every probe, ascending
};

struct Summary {
  double median = 0.0;
  double spread = 0.0;   // half the distance of the quartiles over the median
  double fastest = 0.0;  // the figure if only the fastest run of each contender counted
  int samples = 0;
};

// Of speeds: the largest is the fastest.
Summary summarise(std::vector<double> speeds);

// Per round a[i] / b[i] of two times, summarised: the drift between rounds cancels.
Summary summarise_ratio(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace ring::bench
