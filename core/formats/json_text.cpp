#include "core/formats/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.h"

namespace ring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr size_t kDeepest = 200;
constexpr size_t kColumns = 100;

/// Builds the document; unlike the library's own builder it refuses repeated keys and deep nesting.
class Builder : public nlohmann::json_sax<json> {
 public:
  explicit Builder(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  json take() { return std::move(root_); }

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& /*token*/) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(size_t /*count*/) override { return open(json::object()); }
  bool start_array(size_t /*count*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    json& object = *open_.back();
    if (object.contains(name)) {
      throw_usage(fmt::format("{}: the key \"{}\" appears twice in one object", file_, name));
    }
    slot_ = &object[name];
    return true;
  }

  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    std::string_view what = error.what();
    for (const std::string_view start : {"column ", ": ", "] "}) {
      if (const size_t at = what.find(start); at != std::string_view::npos) {
        what.remove_prefix(at + start.size());
        if (start == ": ") break;
      }
    }
    const size_t end = std::min(position, text_.size());
    const std::string_view before = text_.substr(0, end);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t newline = before.rfind('\n');
    const size_t column = newline == std::string_view::npos ? end : end - newline - 1;
    const bool is_cut = is_cut_short(what);
    throw_usage(
        fmt::format("{}:{}:{}: not valid JSON: {}", file_, line, std::max<size_t>(column, 1), what),
        is_cut ? "The file ends early: it was cut short, or is still being written." : "");
  }

 private:
  template <typename Value>
  bool put(Value&& value) {
    place(json(std::forward<Value>(value)));
    return true;
  }

  json& place(json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    json& parent = *open_.back();
    if (parent.is_object()) return *slot_ = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }

  bool open(json&& container) {
    if (open_.size() >= kDeepest) {
      throw_usage(fmt::format("{}: nested deeper than {} levels", file_, kDeepest));
    }
    open_.push_back(&place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  json root_;
  std::vector<json*> open_;
  json* slot_ = nullptr;
};

/// A key as JSON text. Replacing bytes, as is done in values, could make two keys one.
std::string key_text(const std::string& key) {
  try {
    return ordered_json(key).dump() + ": ";
  } catch (const ordered_json::type_error&) {
    throw_usage("a key that is not UTF-8 cannot be written as JSON");
  }
}

/// Appends the one-line form, or returns false once `limit` characters are passed.
bool append_flat(const ordered_json& value, size_t limit, std::string& out) {
  if (!value.is_structured()) {
    out += value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    return out.size() <= limit;
  }
  const bool is_object = value.is_object();
  out += is_object ? '{' : '[';
  bool is_first = true;
  for (auto item = value.begin(); item != value.end(); ++item) {
    if (!is_first) out += ", ";
    is_first = false;
    if (is_object) out += key_text(item.key());
    if (!append_flat(item.value(), limit, out)) return false;
  }
  out += is_object ? '}' : ']';
  return out.size() <= limit;
}

void append_pretty(const ordered_json& value, size_t indent, size_t prefix, std::string& out) {
  std::string flat;
  const size_t used = indent + prefix + 1;
  if (append_flat(value, used < kColumns ? kColumns - used : 0, flat) || !value.is_structured()) {
    out += flat;
    return;
  }
  const bool is_object = value.is_object();
  out += is_object ? '{' : '[';
  bool is_first = true;
  for (auto item = value.begin(); item != value.end(); ++item) {
    out += is_first ? "\n" : ",\n";
    is_first = false;
    out.append(indent + 2, ' ');
    const std::string key = is_object ? key_text(item.key()) : std::string();
    out += key;
    append_pretty(item.value(), indent + 2, key.size(), out);
  }
  out += '\n';
  out.append(indent, ' ');
  out += is_object ? '}' : ']';
}

void require_finite(const ordered_json& value, std::string_view what) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw_usage(fmt::format("{} holds a number that is not finite and cannot be written", what));
  }
  if (value.is_structured()) {
    for (const ordered_json& item : value) require_finite(item, what);
  }
}

}  // namespace

bool is_cut_short(std::string_view parser_message) {
  return parser_message.find("unexpected end of input") != std::string_view::npos ||
         parser_message.find("missing closing quote") != std::string_view::npos;
}

json parse_json(std::string_view text, const std::string& file) {
  Builder builder(text, file);
  json::sax_parse(text, &builder);
  return builder.take();
}

std::string json_text(const ordered_json& value, std::string_view what) {
  require_finite(value, what);
  std::string out;
  append_pretty(value, 0, 0, out);
  out += '\n';
  return out;
}

std::string json_quote(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace ring
