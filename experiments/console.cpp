#include "experiments/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "core/error.h"
#include "experiments/json.h"

namespace ring {

void Console::print(std::string_view text) {
  if (!is_json_) out_ << text;
}

void Console::print_raw(std::string_view text) { out_ << text; }

void Console::print_document(const Json& document) {
  RING_ASSERT(is_json_ && !has_document_);
  has_document_ = true;
  out_ << document.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void Console::note(std::string_view text) { err_ << text << std::endl; }

void Console::draw(std::string_view text) { err_ << text << std::flush; }

void Console::finish() {
  errno = 0;
  out_.flush();
  if (out_.good()) return;
  const std::string reason = errno == 0 ? "the stream is broken" : std::strerror(errno);
  throw Error(ErrorKind::kRunFailed, "standard output could not be written: " + reason,
              "what was printed is not complete");
}

namespace {

bool wants_color(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool is_refused = no_color != nullptr && *no_color != '\0';
  const bool is_dumb = term == nullptr || std::strcmp(term, "dumb") == 0;
  return isatty(descriptor) == 1 && !is_refused && !is_dumb;
}

/// 0 where the stream is no terminal or does not know.
size_t terminal_columns(int descriptor) {
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace

Console process_console() {
  const auto style_of = [](int descriptor) {
    return Style{wants_color(descriptor), terminal_columns(descriptor)};
  };
  return Console(std::cout, std::cerr, style_of(STDOUT_FILENO), style_of(STDERR_FILENO),
                 isatty(STDERR_FILENO) == 1);
}

}  // namespace ring
