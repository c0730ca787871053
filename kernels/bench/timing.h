// Interleaved timing: every contender once per round, so that drift of the clock hits all alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace ring::bench {

struct Contender {
  std::string name;
  std::function<void()> run;
};

// seconds[contender][round], after one untimed round.
std::vector<std::vector<double>> time_rounds(const std::vector<Contender>& contenders, int rounds);

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
