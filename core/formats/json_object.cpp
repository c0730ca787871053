#include "core/formats/json_object.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace ring {
namespace {

using nlohmann::json;

std::string kind_of(const json& value) {
  if (value.is_null()) return "null";
  if (value.is_number_integer()) return "a whole number";
  if (value.is_number()) return "a number with a fraction";
  return std::string(value.is_object() || value.is_array() ? "an " : "a ") + value.type_name();
}

[[noreturn]] void throw_type(const json& value, const JsonPlace& place, std::string_view wanted) {
  throw_usage(fmt::format("{}: expected {}, found {}", place.text(), wanted, kind_of(value)));
}

}  // namespace

JsonPlace JsonPlace::at(std::string_view key) const {
  std::string escaped;
  for (const char c : key) {
    if (c == '~') {
      escaped += "~0";
    } else if (c == '/') {
      escaped += "~1";
    } else {
      escaped += c;
    }
  }
  return {file, pointer + "/" + escaped};
}

JsonPlace JsonPlace::at(size_t index) const { return {file, fmt::format("{}/{}", pointer, index)}; }

std::string JsonPlace::text() const {
  return pointer.empty() ? file : fmt::format("{}: {}", file, pointer);
}

int64_t as_integer(const json& value, const JsonPlace& place, int64_t low, int64_t high) {
  if (!value.is_number_integer()) throw_type(value, place, "a whole number of at most 64 bits");
  const bool is_large =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kHighest64);
  const int64_t number = is_large ? kHighest64 : value.get<int64_t>();
  if (is_large || number < low || number > high) {
    const std::string range =
        high == kHighest64 ? fmt::format("at least {}", low) : fmt::format("{} to {}", low, high);
    throw_usage(
        fmt::format("{}: {} is out of range, allowed is {}", place.text(), value.dump(),
                    low == kLowest64 && high == kHighest64 ? "a signed 64-bit number" : range));
  }
  return number;
}

double as_number(const json& value, const JsonPlace& place) {
  if (!value.is_number()) throw_type(value, place, "a number");
  const double number = value.get<double>();
  if (!std::isfinite(number)) throw_usage(place.text() + ": the number is not finite");
  return number;
}

bool as_boolean(const json& value, const JsonPlace& place) {
  if (!value.is_boolean()) throw_type(value, place, "true or false");
  return value.get<bool>();
}

const std::string& as_string(const json& value, const JsonPlace& place) {
  if (!value.is_string()) throw_type(value, place, "a string");
  return value.get_ref<const std::string&>();
}

const json& as_array(const json& value, const JsonPlace& place) {
  if (!value.is_array()) throw_type(value, place, "an array");
  return value;
}

size_t index_of_word(std::string_view word, std::span<const std::string_view> allowed,
                     const std::string& where) {
  const auto found = std::find(allowed.begin(), allowed.end(), word);
  if (found != allowed.end()) return static_cast<size_t>(found - allowed.begin());
  const std::string nearest =
      nearest_spelling(word, allowed.data(), static_cast<int>(allowed.size()));
  throw_usage(fmt::format("{}: \"{}\" is not allowed here", where, word),
              fmt::format("Allowed are {}.{}", fmt::join(allowed, ", "),
                          nearest.empty() ? "" : fmt::format(" Did you mean {}?", nearest)));
}

JsonObject::JsonObject(const json& value, JsonPlace place, std::vector<std::string_view> keys)
    : value_(&value), place_(std::move(place)), keys_(std::move(keys)) {
  if (!value.is_object()) throw_type(value, place_, "an object");
  for (const auto& item : value.items()) {
    if (std::find(keys_.begin(), keys_.end(), item.key()) != keys_.end()) continue;
    const std::string nearest =
        nearest_spelling(item.key(), keys_.data(), static_cast<int>(keys_.size()));
    throw_usage(fmt::format("{}: unknown key \"{}\"", place_.text(), item.key()),
                nearest.empty() ? fmt::format("Known keys are {}.", fmt::join(keys_, ", "))
                                : fmt::format("Did you mean \"{}\"?", nearest));
  }
}

bool JsonObject::has(std::string_view key) const { return value_->contains(key); }

const json& JsonObject::at(std::string_view key) const {
  RING_ASSERT(std::find(keys_.begin(), keys_.end(), key) != keys_.end());
  const auto found = value_->find(key);
  if (found == value_->end()) {
    throw_usage(fmt::format("{}: the key \"{}\" is missing", place_.text(), key));
  }
  return *found;
}

int64_t JsonObject::integer(std::string_view key, int64_t low, int64_t high) const {
  return as_integer(at(key), place(key), low, high);
}

int32_t JsonObject::integer32(std::string_view key, int32_t low) const {
  return static_cast<int32_t>(integer(key, low, std::numeric_limits<int32_t>::max()));
}

double JsonObject::number(std::string_view key) const { return as_number(at(key), place(key)); }

double JsonObject::amount(std::string_view key) const {
  const double value = number(key);
  if (value < 0) throw_usage(fmt::format("{}: {} is negative", place(key).text(), value));
  return value;
}

bool JsonObject::boolean(std::string_view key) const { return as_boolean(at(key), place(key)); }

const std::string& JsonObject::string(std::string_view key) const {
  return as_string(at(key), place(key));
}

const json& JsonObject::array(std::string_view key) const { return as_array(at(key), place(key)); }

const json& JsonObject::map(std::string_view key) const {
  const json& value = at(key);
  if (!value.is_object()) throw_type(value, place(key), "an object");
  return value;
}

void require_schema(const json& document, const std::string& file, std::string_view schema,
                    int64_t version) {
  const std::string wanted = fmt::format("It must begin with \"schema\": \"{}\".", schema);
  if (!document.is_object() || !document.contains("schema")) {
    throw_usage(fmt::format("{}: not a file of ringscope", file), wanted);
  }
  const JsonPlace place{file, ""};
  const std::string& found = as_string(document.at("schema"), place.at("schema"));
  if (found != schema) {
    throw_usage(fmt::format("{}: /schema: this is a \"{}\" file", file, found), wanted);
  }
  if (!document.contains("schema_version")) {
    throw_usage(fmt::format("{}: the key \"schema_version\" is missing", file));
  }
  const int64_t has = as_integer(document.at("schema_version"), place.at("schema_version"));
  if (has != version) {
    throw_usage(
        fmt::format("{}: /schema_version: version {} is {} than version {}, which is read "
                    "here",
                    file, has, has > version ? "newer" : "older", version),
        has > version ? "A newer ringscope wrote it." : "Write it anew with this ringscope.");
  }
}

}  // namespace ring
