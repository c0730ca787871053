// XML in, for files that may be hostile.
#pragma once

#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace ring {

/// Parses into `document`. Throws Error(kUsage) with file:line:column for text that is no XML, for
/// elements nested deeper than 64, and for a document type, which entity bombs need.
void parse_xml(std::string_view text, const std::string& file, pugi::xml_document& document);

}  // namespace ring
