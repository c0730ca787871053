// JSON text in and out, as strictly as files that programs write deserve.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ring {

/// Parses one JSON document. `file` names it in messages. Throws Error(kUsage) with line and column
/// for a syntax error (a text that ends early says so), and for a key that appears twice in an
/// object, nesting deeper than 200, or a number beyond the range of a double.
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// Two blanks of indentation; arrays and objects that fit into a line of 100 columns stay on one.
/// Numbers read back exactly; bytes of values that are not UTF-8 are replaced. Throws Error(kUsage)
/// for a number that is not finite, naming `what`, and for a key that is not UTF-8.
std::string json_text(const nlohmann::ordered_json& value, std::string_view what);

/// True when the parser's message means that the text ended before the document did.
bool is_cut_short(std::string_view parser_message);

/// The text as a JSON string with its quotes; bytes that are not UTF-8 are replaced.
std::string json_quote(std::string_view text);

}  // namespace ring
