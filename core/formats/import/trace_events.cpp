#include "core/formats/import/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"
#include "core/formats/json_text.h"

namespace ring {
namespace {

using nlohmann::json;

constexpr size_t kDeepest = 64;
constexpr size_t kLongestName = 4096;

/// Follows the parser: knows at which keys it stands and fills event and header.
class EventHandler : public nlohmann::json_sax<json> {
 public:
  EventHandler(const std::string& file, const std::function<void(const TraceEvent&)>& take)
      : file_(file), take_(take) {}

  TraceHeader header;

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t value) override {
    return number(value, std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<uint64_t>(INT64_MAX);
    return number(fits ? static_cast<int64_t>(value) : -1, std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& token) override {
    return number(static_cast<int64_t>(std::min(std::max(value, -1.0), 9e18)), token);
  }
  bool string(string_t& value) override {
    if (in_event()) take_event_text(value);
    if (is_at("distributedInfo") || is_at("deviceProperties")) take_header_text(value);
    return true;
  }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(size_t /*count*/) override { return open(false); }
  bool start_array(size_t /*count*/) override { return open(true); }
  bool end_object() override {
    if (depth() == event_depth_ && in_event()) take_(event_);
    return close();
  }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    levels_.back().key = name.size() > kLongestName ? std::string() : name;
    return true;
  }

  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    const bool is_cut = is_cut_short(error.what());
    throw_usage(fmt::format("{}: not valid JSON at byte {}{}", file_, position,
                            is_cut ? ": the file ends early" : ""),
                is_cut ? "Totals of a part would mislead; trace again or get the whole file." : "");
  }

 private:
  struct Level {
    bool is_array = false;
    std::string key;
  };

  size_t depth() const { return levels_.size(); }

  /// True within an element of the array of events.
  bool in_event() const { return event_depth_ != 0 && depth() >= event_depth_; }

  /// The first key of the document on the way to here.
  bool is_at(std::string_view key) const {
    return !levels_.empty() && !levels_[0].is_array && levels_[0].key == key;
  }

  bool open(bool is_array) {
    if (depth() >= kDeepest) throw_usage(fmt::format("{}: nested deeper than {}", file_, kDeepest));
    if (is_array && ((depth() == 0) || (depth() == 1 && is_at("traceEvents")))) {
      header.has_events = true;
      event_depth_ = depth() + 2;
    }
    if (!is_array && is_at("deviceProperties") && depth() == 2) ++header.devices;
    levels_.push_back({is_array, {}});
    if (depth() == event_depth_ && !is_array) event_ = {};
    return true;
  }

  bool close() {
    levels_.pop_back();
    if (event_depth_ != 0 && depth() + 2 == event_depth_) event_depth_ = 0;
    return true;
  }

  bool number(int64_t value, const std::string& token) {
    if (in_event()) {
      const std::string& key = levels_.back().key;
      if (depth() == event_depth_) {
        if (key == "ts") event_.begin_ns = nanoseconds_of_microseconds(token);
        if (key == "dur") event_.duration_ns = nanoseconds_of_microseconds(token);
      } else if (depth() == event_depth_ + 1 && levels_[depth() - 2].key == "args") {
        if (key == "stream") event_.stream = value;
        if (key == "device") event_.device = value;
        if (key == "In msg nelems") event_.elements = value;
      }
    } else if (depth() == 2 && is_at("distributedInfo")) {
      if (levels_.back().key == "rank") header.rank = value;
      if (levels_.back().key == "world_size") header.world_size = value;
    } else if (is_at("deviceProperties") && levels_.back().key == "numSms") {
      header.sms = value;
    }
    return true;
  }

  void take_event_text(const std::string& value) {
    const std::string& key = levels_.back().key;
    if (depth() == event_depth_) {
      if (key == "ph") event_.phase = value.substr(0, 8);
      if (key == "cat") event_.category = value.substr(0, 64);
      if (key == "name") event_.name = value.substr(0, kLongestName);
      if (key == "ts") event_.begin_ns = nanoseconds_of_microseconds(value);
      if (key == "dur") event_.duration_ns = nanoseconds_of_microseconds(value);
    } else if (depth() == event_depth_ + 1 && key == "dtype") {
      event_.element_type = value.substr(0, 64);
    }
  }

  void take_header_text(const std::string& value) {
    if (is_at("deviceProperties") && levels_.back().key == "name" && header.device_name.empty()) {
      header.device_name = value.substr(0, 256);
    }
  }

  const std::string& file_;
  const std::function<void(const TraceEvent&)>& take_;
  std::vector<Level> levels_;
  size_t event_depth_ = 0;  ///< Depth inside an event; 0 outside the array of events.
  TraceEvent event_;
};

}  // namespace

int64_t nanoseconds_of_microseconds(const std::string& number) {
  const size_t point = number.find('.');
  const std::string whole = number.substr(0, point);
  std::string fraction = point == std::string::npos ? "" : number.substr(point + 1);
  if (fraction.find_first_not_of("0123456789") != std::string::npos) {
    double value = 0;  // An exponent: no digits to be kept exactly.
    const auto result = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool fits = result.ec == std::errc() && value >= 0 && value < 9e15;
    return fits ? static_cast<int64_t>(value * 1000 + 0.5) : -1;
  }
  fraction = (fraction + "000").substr(0, 3);
  int64_t micro = 0, nano = 0;
  const auto head = std::from_chars(whole.data(), whole.data() + whole.size(), micro);
  std::from_chars(fraction.data(), fraction.data() + fraction.size(), nano);
  const bool is_whole = head.ec == std::errc() && head.ptr == whole.data() + whole.size();
  if (!is_whole || micro < 0 || micro > INT64_MAX / 1000 - 1) return -1;
  return micro * 1000 + nano;
}

TraceHeader read_trace_events(std::istream& input, const std::string& file,
                              const std::function<void(const TraceEvent&)>& take) {
  EventHandler handler(file, take);
  json::sax_parse(input, &handler);
  if (!handler.header.has_events) {
    throw_usage(file + ": not a trace: it has no array \"traceEvents\"");
  }
  return handler.header;
}

}  // namespace ring
