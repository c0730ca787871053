#include "core/formats/import/safe_xml.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace ring {
namespace {

constexpr int kDeepest = 64;

std::string place(std::string_view text, size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column =
      newline == std::string_view::npos ? before.size() + 1 : before.size() - newline;
  return fmt::format("{}:{}:{}", file, line, column);
}

/// The end of a tag that begins at `at`: the first '>' outside quotes.
size_t end_of_tag(std::string_view text, size_t at) {
  char quote = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '>') {
      return at;
    }
  }
  return text.size();
}

/// Checked before parsing, since taking a deep tree down again needs as deep a stack.
void check_nesting(std::string_view text, const std::string& file) {
  int depth = 0;
  for (size_t at = text.find('<'); at < text.size(); at = text.find('<', at)) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("<!--")) {
      at = std::min(text.find("-->", at), text.size());
      continue;
    }
    if (rest.starts_with("<![CDATA[")) {
      at = std::min(text.find("]]>", at), text.size());
      continue;
    }
    if (rest.starts_with("<!")) {
      throw_usage(place(text, at, file) + ": a document type is not allowed here");
    }
    const size_t end = end_of_tag(text, at);
    if (rest.starts_with("</")) {
      --depth;
    } else if (!rest.starts_with("<?") &&
               (end == 0 || text[std::min(end, text.size()) - 1] != '/')) {
      if (++depth > kDeepest) {
        throw_usage(
            fmt::format("{}: elements nested deeper than {}", place(text, at, file), kDeepest));
      }
    }
    at = std::max(end, at + 1);
  }
}

}  // namespace

void parse_xml(std::string_view text, const std::string& file, pugi::xml_document& document) {
  check_nesting(text, file);
  const pugi::xml_parse_result result = document.load_buffer(text.data(), text.size());
  if (!result) {
    throw_usage(
        fmt::format("{}: not valid XML: {}",
                    place(text, static_cast<size_t>(std::max<ptrdiff_t>(result.offset, 0)), file),
                    result.description()));
  }
}

}  // namespace ring
