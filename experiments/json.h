// Json: the documents that verbs print, keys in the order in which they are written.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace ring {

using Json = nlohmann::ordered_json;

/// A document that begins with its schema ("ringscope-NAME") and schema version.
inline Json json_document(std::string_view name, int version = 1) {
  return {{"schema", "ringscope-" + std::string(name)}, {"schema_version", version}};
}

}  // namespace ring
