// TomlTable: strict reading of one table of a TOML file; what is wrong is named by file and line.
#pragma once

#include <toml++/toml.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/units.h"

namespace ring {

/// Parses a document; throws Error(kUsage) with file:line:column.
toml::table parse_toml(std::string_view text, const std::string& file);

/// The constructor throws Error(kUsage) for a key outside `keys`, naming the nearest one.
class TomlTable {
 public:
  TomlTable(const toml::table& table, const std::string& file, std::string title,
            std::vector<std::string_view> keys);

  bool has(std::string_view key) const { return table_->contains(key); }

  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  /// A whole number, or a string such as "4Ki".
  std::optional<int64_t> count(std::string_view key, int64_t low, int64_t high) const;
  std::optional<double> number(std::string_view key) const;
  /// A string with a unit, such as "3us".
  std::optional<Picoseconds> time(std::string_view key) const;
  /// Throws Error(kUsage) with file:line when the key is missing.
  template <typename Value>
  Value required(std::string_view key, std::optional<Value> value) const {
    if (!value) fail(where(), "the key \"" + std::string(key) + "\" is missing in " + title_);
    return std::move(*value);
  }

  /// The table under the key, or null.
  const toml::table* table(std::string_view key) const;
  /// The tables of an array of tables; empty when the key is missing.
  std::vector<const toml::table*> tables(std::string_view key) const;

  /// Calls `read` and puts file and line of the key before the message of an Error.
  template <typename Read>
  auto at_key(std::string_view key, Read read) const {
    try {
      return read();
    } catch (const Error& error) {
      throw Error(error.kind(), where(key) + ": " + error.what(), error.hint());
    }
  }

  /// "file:line" of the table or of a key in it.
  std::string where() const;
  std::string where(std::string_view key) const;

 private:
  [[noreturn]] static void fail(const std::string& where, const std::string& message,
                                std::string hint = {});
  [[noreturn]] void fail_type(std::string_view key, std::string_view wanted) const;

  const toml::table* table_;
  std::string file_;
  std::string title_;
};

}  // namespace ring
