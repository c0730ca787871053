#include "core/program_check_contents.h"

#include <fmt/format.h>

#include <algorithm>

namespace ring::check {

Contents::Contents(const RingProgram& program, int rank, std::vector<Fault>& faults)
    : program_(program),
      ops_(program.rank_programs[static_cast<size_t>(rank)]),
      rank_(rank),
      order_(ops_, program.lanes),
      faults_(faults) {}

void Contents::fill(const Place& place, const std::vector<int64_t>& positions) {
  std::vector<Row>& rows = held_[place].rows;
  rows.resize(positions.size());
  for (size_t row = 0; row < positions.size(); ++row) rows[row] = {positions[row], -1, place.index};
}

void Contents::add_fault(FaultKind kind, size_t op, std::string_view reason, int64_t other) {
  const OpId id{rank_, static_cast<int64_t>(op)};
  std::string text = fmt::format("{} {}", describe(program_, id), reason);
  std::vector<OpId> ids{id};
  if (other >= 0) {
    ids.push_back({rank_, other});
    text += " " + describe(program_, ids.back());
  }
  faults_.push_back({kind, std::move(text), std::move(ids)});
}

void Contents::apply(const Access& access, size_t i) {
  Held& held = held_[access.place];
  const auto needed = *std::max_element(access.rows.begin(), access.rows.end()) + 1;
  if (static_cast<int64_t>(held.rows.size()) < needed)
    held.rows.resize(static_cast<size_t>(needed));
  if (access.writes) {
    write(held, access, i);
  } else {
    read(held, access, i);
  }
}

void Contents::read(Held& held, const Access& access, size_t i) {
  int64_t last_writer = -2;
  for (size_t k = 0; k < access.rows.size(); ++k) {
    const Row& row = held.rows[static_cast<size_t>(std::max<int64_t>(access.rows[k], 0))];
    if (row.position != access.positions[k]) {
      add_fault(FaultKind::kWrongContents, i,
                fmt::format("reads token {} where {}", access.positions[k],
                            row.position < 0 ? std::string("nothing was written")
                                             : fmt::format("token {} lies", row.position)));
      return;
    }
    if (row.buffer != access.buffer) {
      add_fault(FaultKind::kWrongContents, i,
                fmt::format("reads buffer {} after buffer {}, which has the same memory, was "
                            "written by",
                            access.buffer, row.buffer),
                row.writer);
      return;
    }
    if (row.writer == last_writer || row.writer < 0) continue;
    last_writer = row.writer;
    if (row.writer != static_cast<int64_t>(i) && !order_.is_before(op_at(row.writer), i)) {
      add_fault(FaultKind::kBufferRace, i, "does not wait for", row.writer);
      return;
    }
  }
  const auto [first, last] = std::minmax_element(access.rows.begin(), access.rows.end());
  held.readers.push_back({i, *first, *last});
}

void Contents::write(Held& held, const Access& access, size_t i) {
  const auto [first, last] = std::minmax_element(access.rows.begin(), access.rows.end());
  for (const Reader& reader : held.readers) {
    const bool overlaps = reader.first <= *last && *first <= reader.last;
    if (reader.op == i || !overlaps || order_.is_before(ops_.ops[reader.op], i)) continue;
    add_fault(FaultKind::kBufferRace, i, "may overwrite what is still read by",
              static_cast<int64_t>(reader.op));
    return;
  }
  std::erase_if(held.readers, [first = *first, last = *last](const Reader& reader) {
    return first <= reader.first && reader.last <= last;
  });
  int64_t last_writer = -1;
  for (size_t k = 0; k < access.rows.size(); ++k) {
    Row& row = held.rows[static_cast<size_t>(std::max<int64_t>(access.rows[k], 0))];
    const int64_t writer = row.writer;
    row = {access.positions[k], static_cast<int64_t>(i), access.buffer};
    if (writer == last_writer || writer < 0 || writer == static_cast<int64_t>(i)) continue;
    last_writer = writer;
    if (!order_.is_before(op_at(writer), i)) {
      add_fault(FaultKind::kBufferRace, i, "may run together with", writer);
      return;
    }
  }
}

}  // namespace ring::check
