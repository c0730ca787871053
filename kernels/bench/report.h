// Figures of a benchmark run: a table for people, JSON for programs, a roofline picture.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ring::bench {

struct Figure {
  std::string name;
  double value = 0.0;
  std::string unit;
  std::optional<double> target;  // the figure is good on the right side of it
  bool at_least = true;          // which side: value >= target, or value <= target
  double spread = 0.0;           // half the distance of the quartiles, relative to the median
  double fastest = 0.0;          // the figure if only the fastest run of each contender counted
  int samples = 0;               // rounds that count
  int rounds = 0;                // rounds that were run
  bool quiet = false;            // whether the rounds that count were quiet (kernels/bench/quiet.h)

  bool ok() const { return !target || (at_least ? value >= *target : value <= *target); }
};

// A kernel in the roofline picture.
struct RooflinePoint {
  std::string name;
  double flops_per_byte = 0.0;
  double gflops = 0.0;
};

struct Ceiling {
  std::string name;
  double value = 0.0;  // GFLOP/s, or GB/s for a slope
};

struct Roofline {
  Ceiling compute;
  std::vector<Ceiling> bandwidths;
  std::vector<RooflinePoint> points;
};

struct Context {
  std::string cpu, isa, peers;
};

// One line per figure: name, value, unit, target, ok, spread, fastest, rounds that count, of how
// many where all of them were quiet.
std::string as_table(const std::vector<Figure>& figures);
std::string as_json(const Context& context, const std::vector<Figure>& figures);
std::string as_svg(const Roofline& roofline);

}  // namespace ring::bench
