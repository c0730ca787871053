// Lines and words of logs: what the readers of other tools' output share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ring {

/// One line of a file without its end, terminal colours taken out.
struct TextLine {
  int64_t number = 0;  ///< From 1.
  std::string text;
  bool is_cut = false;  ///< The last line, without a newline.
};

/// Splits at newlines and drops carriage returns. Throws Error(kUsage) naming `file` for bytes that
/// no text has, and for a line of more than a megabyte.
std::vector<TextLine> split_lines(std::string_view text, const std::string& file);

/// Without blanks at both ends.
std::string_view trimmed(std::string_view text);
/// Split at runs of blanks and tabs.
std::vector<std::string_view> words_of(std::string_view text);
/// The text after `key` when the line holds it.
std::optional<std::string_view> text_after(std::string_view line, std::string_view key);
std::string lower(std::string_view text);
bool contains(std::string_view text, std::string_view part);

/// The whole word as a number; nothing else may stand in it. "1,234.5" counts as 1234.5, "1,5" as
/// no number.
std::optional<double> number_of(std::string_view word);
std::optional<int64_t> whole_of(std::string_view word);
/// The digits with which the text begins, as a number.
std::optional<int64_t> leading_whole(std::string_view text);
/// "GPU12" with prefix "GPU" is 12.
std::optional<int> index_after(std::string_view word, std::string_view prefix);

}  // namespace ring
