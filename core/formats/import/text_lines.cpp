#include "core/formats/import/text_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"

namespace ring {
namespace {

constexpr size_t kLongestLine = size_t{1} << 20;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Takes out ESC [ ... letter, and a carriage return at the end.
std::string cleaned(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (is_digit(line[i]) || line[i] == ';')) ++i;
      continue;
    }
    out += line[i];
  }
  if (!out.empty() && out.back() == '\r') out.pop_back();
  return out;
}

/// Without the commas that part thousands and one that ends the word; nothing where a comma stands
/// elsewhere, as in "5,9", which is a decimal comma.
std::optional<std::string> without_commas(std::string_view word) {
  if (word.ends_with(',')) word.remove_suffix(1);
  std::string plain;
  size_t digits = 0;  // Of the group that a comma may end.
  bool has_comma = false;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] == ',') {
      const bool is_group = has_comma ? digits == 3 : digits >= 1 && digits <= 3;
      if (!is_group) return std::nullopt;
      has_comma = true;
      digits = 0;
      continue;
    }
    if (has_comma && !is_digit(word[i]) && digits != 3) return std::nullopt;
    if (has_comma && !is_digit(word[i])) return plain + std::string(word.substr(i));
    digits = is_digit(word[i]) ? digits + 1 : 0;
    plain += word[i];
  }
  if (has_comma && digits != 3) return std::nullopt;
  return plain;
}

}  // namespace

std::vector<TextLine> split_lines(std::string_view text, const std::string& file) {
  if (text.find('\0') != std::string_view::npos) throw_usage(file + ": this is not a text file");
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  std::vector<TextLine> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const bool is_cut = end == std::string_view::npos;
    const std::string_view line = text.substr(0, end);
    const auto number = static_cast<int64_t>(lines.size()) + 1;
    if (line.size() > kLongestLine) {
      throw_usage(fmt::format("{}:{}: a line of more than {} bytes", file, number, kLongestLine));
    }
    lines.push_back({number, cleaned(line), is_cut});
    text = is_cut ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < text.size();) {
    at = text.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) break;
    const size_t end = std::min(text.find_first_of(" \t", at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<std::string_view> text_after(std::string_view line, std::string_view key) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + key.size());
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<double> number_of(std::string_view word) {
  const auto plain = without_commas(word);
  if (!plain) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(plain->data(), plain->data() + plain->size(), value);
  if (error != std::errc() || end != plain->data() + plain->size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> whole_of(std::string_view word) {
  const auto plain = without_commas(word);
  if (!plain) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(plain->data(), plain->data() + plain->size(), value);
  if (error != std::errc() || end != plain->data() + plain->size()) return std::nullopt;
  return value;
}

std::optional<int64_t> leading_whole(std::string_view text) {
  size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  return whole_of(text.substr(0, digits));
}

std::optional<int> index_after(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix) || word.size() == prefix.size()) return std::nullopt;
  const std::string_view digits = word.substr(prefix.size());
  if (!std::all_of(digits.begin(), digits.end(), is_digit) || digits.size() > 6) {
    return std::nullopt;
  }
  return static_cast<int>(*whole_of(digits));
}

}  // namespace ring
