// The --help texts.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace ring {

/// All verbs, one a line, and the options of `ringscope` itself.
std::string program_help(const CLI::App& root);
/// One verb: what it does, its arguments, and its options under their headings.
std::string verb_help(const CLI::App& verb);

}  // namespace ring
