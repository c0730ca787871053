// Console: where a verb writes. stdout is data, stderr is talk.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string_view>

#include "experiments/style.h"

namespace ring {

class Console {
 public:
  /// `is_err_terminal` allows a progress line on `err`.
  Console(std::ostream& out, std::ostream& err, Style out_style, Style err_style,
          bool is_err_terminal)
      : out_(out),
        err_(err),
        out_style_(out_style),
        err_style_(err_style),
        is_err_terminal_(is_err_terminal) {}

  /// With JSON, `print` is silent and the one document is all that stdout gets.
  void use_json() { is_json_ = true; }
  bool is_json() const { return is_json_; }
  const Style& style() const { return out_style_; }
  const Style& talk_style() const { return err_style_; }
  bool is_terminal() const { return is_err_terminal_; }

  /// Data for people, on stdout; nothing with JSON.
  void print(std::string_view text);
  /// Data that has a format of its own (TOML, help), on stdout.
  void print_raw(std::string_view text);
  /// The document, on stdout. Call once per verb, and only with JSON.
  void print_document(const nlohmann::ordered_json& document);
  bool has_printed_document() const { return has_document_; }
  /// Talk, on stderr, one line; the line break is added.
  void note(std::string_view text);
  /// Talk that is drawn as is and shown at once: for the progress line.
  void draw(std::string_view text);

  /// Flushes stdout. Throws Error(kRunFailed) when any of it could not be written.
  void finish();

 private:
  std::ostream& out_;
  std::ostream& err_;
  Style out_style_, err_style_;
  bool is_err_terminal_ = false;
  bool is_json_ = false;
  bool has_document_ = false;
};

/// The console of this process: colour where the stream is a terminal, unless NO_COLOR is set to
/// something or TERM is "dumb".
Console process_console();

}  // namespace ring
