#include "experiments/program_source.h"

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/import/imported.h"
#include "core/program_text.h"

namespace ring {

RingProgram read_any_program(const std::string& path) {
  if (detect(head_of_file(path)) == FileKind::kChakra) {
    return std::get<RingProgram>(read_imported(path, FileKind::kChakra).content);
  }
  const std::string text = read_file(path);
  try {
    return parse_program(text);
  } catch (const Error& error) {
    throw Error(error.kind(), path + ": " + error.what(), error.hint());
  }
}

}  // namespace ring
