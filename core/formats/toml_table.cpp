#include "core/formats/toml_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace ring {
namespace {

std::string word_of(toml::node_type type) {
  std::ostringstream out;
  out << type;
  return out.str();
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw_usage(fmt::format("{}:{}:{}: not valid TOML: {}", file, error.source().begin.line,
                            error.source().begin.column, error.description()));
  }
}

TomlTable::TomlTable(const toml::table& table, const std::string& file, std::string title,
                     std::vector<std::string_view> keys)
    : table_(&table), file_(file), title_(std::move(title)) {
  for (const auto& [key, value] : table) {
    if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
    const std::string nearest =
        nearest_spelling(key.str(), keys.data(), static_cast<int>(keys.size()));
    fail(fmt::format("{}:{}", file_, key.source().begin.line),
         fmt::format("unknown key \"{}\" in {}", key.str(), title_),
         nearest.empty() ? fmt::format("Known keys are {}.", fmt::join(keys, ", "))
                         : fmt::format("Did you mean \"{}\"?", nearest));
  }
}

void TomlTable::fail(const std::string& where, const std::string& message, std::string hint) {
  throw_usage(where + ": " + message, std::move(hint));
}

void TomlTable::fail_type(std::string_view key, std::string_view wanted) const {
  fail(where(key),
       fmt::format("\"{}\" must be {}, not {}", key, wanted, word_of(table_->get(key)->type())));
}

std::string TomlTable::where() const {
  return fmt::format("{}:{}", file_, std::max<uint32_t>(table_->source().begin.line, 1));
}

std::string TomlTable::where(std::string_view key) const {
  const toml::node* node = table_->get(key);
  return node == nullptr ? where() : fmt::format("{}:{}", file_, node->source().begin.line);
}

std::optional<std::string> TomlTable::text(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_string()) fail_type(key, "a string");
  return node->as_string()->get();
}

std::optional<bool> TomlTable::boolean(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_boolean()) fail_type(key, "true or false");
  return node->as_boolean()->get();
}

std::optional<int64_t> TomlTable::count(std::string_view key, int64_t low, int64_t high) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  int64_t value = 0;
  if (node->is_integer()) {
    value = node->as_integer()->get();
  } else if (node->is_string()) {
    value = at_key(key, [&] { return parse_count(node->as_string()->get(), key); });
  } else {
    fail_type(key, "a whole number or a string such as \"4Ki\"");
  }
  if (value < low || value > high) {
    fail(where(key), fmt::format("\"{}\" is {}, allowed is {}", key, value,
                                 high == INT64_MAX ? fmt::format("at least {}", low)
                                                   : fmt::format("{} to {}", low, high)));
  }
  return value;
}

std::optional<double> TomlTable::number(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_number()) fail_type(key, "a number");
  const double value = node->is_integer() ? static_cast<double>(node->as_integer()->get())
                                          : node->as_floating_point()->get();
  if (!std::isfinite(value)) fail(where(key), fmt::format("\"{}\" is not finite", key));
  return value;
}

std::optional<Picoseconds> TomlTable::time(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return std::nullopt;
  if (!node->is_string()) fail_type(key, "a time with its unit, such as \"3us\"");
  const Picoseconds value = at_key(key, [&] { return parse_time(node->as_string()->get(), key); });
  if (value < 0) fail(where(key), fmt::format("\"{}\" is negative", key));
  return value;
}

const toml::table* TomlTable::table(std::string_view key) const {
  const toml::node* node = table_->get(key);
  if (node == nullptr) return nullptr;
  if (!node->is_table()) fail_type(key, fmt::format("a table, [{}]", key));
  return node->as_table();
}

std::vector<const toml::table*> TomlTable::tables(std::string_view key) const {
  std::vector<const toml::table*> out;
  const toml::node* node = table_->get(key);
  if (node == nullptr) return out;
  if (!node->is_array_of_tables()) fail_type(key, fmt::format("a list of tables, [[{}]]", key));
  for (const toml::node& item : *node->as_array()) out.push_back(item.as_table());
  return out;
}

}  // namespace ring
