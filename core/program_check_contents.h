// Contents: which token lies in every row of the shaped buffers and packed states of a rank.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "core/payload.h"
#include "core/program_check_parts.h"

namespace ring::check {

/// A buffer or state, or one of the tensors of a query side. Buffers that share memory are one.
struct Place {
  bool is_state = false;
  int32_t index = 0;
  int part = 0;
  auto operator<=>(const Place&) const = default;
};

/// Rows of a place that an op touches, and which tokens they should be.
struct Access {
  Place place;
  bool writes = false;
  HeadRange heads;
  std::vector<int64_t> rows, positions;
  int32_t buffer = 0;  ///< Of those that share the place.
};

/// Follows a rank op by op: what is read must have been written before, and nothing may be written
/// that may still be read.
class Contents {
 public:
  Contents(const RingProgram& program, int rank, std::vector<Fault>& faults);

  /// The rows hold these tokens from the start.
  void fill(const Place& place, const std::vector<int64_t>& positions);
  /// Op number `op` does this.
  void apply(const Access& access, size_t op);
  void add_fault(FaultKind kind, size_t op, std::string_view reason, int64_t other = -1);

 private:
  struct Row {
    int64_t position = -1;
    int64_t writer = -1;
    int32_t buffer = 0;
  };
  struct Reader {
    size_t op;
    int64_t first, last;
  };
  struct Held {
    std::vector<Row> rows;
    std::vector<Reader> readers;
  };

  void read(Held& held, const Access& access, size_t op);
  void write(Held& held, const Access& access, size_t op);
  const Op& op_at(int64_t index) const { return ops_.ops[static_cast<size_t>(index)]; }

  const RingProgram& program_;
  const RankProgram& ops_;
  const int rank_;
  const Order order_;
  std::map<Place, Held> held_;
  std::vector<Fault>& faults_;
};

}  // namespace ring::check
