// Trace events: hands out the events of a Chrome trace one by one while the JSON is read.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <string>

namespace ring {

/// The fields of an event that matter here; empty or negative where it has none.
struct TraceEvent {
  std::string phase, category, name;
  int64_t begin_ns = -1, duration_ns = -1;
  int64_t device = -1, stream = -1;
  int64_t elements = -1;     ///< "In msg nelems".
  std::string element_type;  ///< "dtype".
};

/// What stands outside the events.
struct TraceHeader {
  int64_t rank = -1, world_size = -1;
  int64_t devices = 0, sms = -1;
  std::string device_name;
  bool has_events = false;
};

/// Calls `take` for every event of the array, or of "traceEvents" in the object, and returns the
/// rest. Throws Error(kUsage) with the byte offset when the text is no JSON, ends early, or nests
/// deeper than 64.
TraceHeader read_trace_events(std::istream& input, const std::string& file,
                              const std::function<void(const TraceEvent&)>& take);

/// "4458035921.123456" in microseconds to nanoseconds, exactly; -1 for another text.
int64_t nanoseconds_of_microseconds(const std::string& number);

}  // namespace ring
