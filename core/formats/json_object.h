// JsonObject: strict reading of one JSON object; what is wrong is named by file and JSON pointer.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace ring {

/// Where a value stands: the file and the JSON pointer in it.
struct JsonPlace {
  std::string file;
  std::string pointer;

  JsonPlace at(std::string_view key) const;
  JsonPlace at(size_t index) const;
  /// "file: /a/b" or "file" for the whole document.
  std::string text() const;
};

inline constexpr int64_t kLowest64 = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kHighest64 = std::numeric_limits<int64_t>::max();

/// Each throws Error(kUsage) with the place when the value has another type or is out of range.
int64_t as_integer(const nlohmann::json& value, const JsonPlace& place, int64_t low = kLowest64,
                   int64_t high = kHighest64);
double as_number(const nlohmann::json& value, const JsonPlace& place);
bool as_boolean(const nlohmann::json& value, const JsonPlace& place);
const std::string& as_string(const nlohmann::json& value, const JsonPlace& place);
const nlohmann::json& as_array(const nlohmann::json& value, const JsonPlace& place);

/// Calls `read`, and puts the place before the message of an Error that it throws.
template <typename Read>
auto with_place(const JsonPlace& place, Read read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.kind(), place.text() + ": " + error.what(), error.hint());
  }
}

/// The index of `word` in `allowed`, else Error(kUsage) with the allowed words and the nearest.
size_t index_of_word(std::string_view word, std::span<const std::string_view> allowed,
                     const std::string& where);

/// Reads the members of an object whose keys are all known. The constructor throws Error(kUsage)
/// for a value that is no object and for a key outside `keys`, naming the nearest one; reading a
/// member that is missing throws Error(kUsage) as well.
class JsonObject {
 public:
  JsonObject(const nlohmann::json& value, JsonPlace place, std::vector<std::string_view> keys);

  bool has(std::string_view key) const;
  const nlohmann::json& at(std::string_view key) const;
  JsonPlace place(std::string_view key) const { return place_.at(key); }
  const JsonPlace& place() const { return place_; }

  int64_t integer(std::string_view key, int64_t low = kLowest64, int64_t high = kHighest64) const;
  int32_t integer32(std::string_view key, int32_t low = std::numeric_limits<int32_t>::min()) const;
  double number(std::string_view key) const;
  /// A number that is not negative: a rate, a time, a factor.
  double amount(std::string_view key) const;
  bool boolean(std::string_view key) const;
  const std::string& string(std::string_view key) const;
  const nlohmann::json& array(std::string_view key) const;
  /// Any key, as for maps from names to values.
  const nlohmann::json& map(std::string_view key) const;

 private:
  const nlohmann::json* value_;
  JsonPlace place_;
  std::vector<std::string_view> keys_;
};

/// Checks the first two keys that every file of ours has: "schema" and "schema_version". Throws
/// Error(kUsage) saying what the file is instead, or which version it has and which is read.
void require_schema(const nlohmann::json& document, const std::string& file,
                    std::string_view schema, int64_t version);

}  // namespace ring
