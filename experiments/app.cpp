#include "experiments/app.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <new>

#include "core/build_info.h"
#include "core/error.h"
#include "experiments/help.h"
#include "experiments/json.h"
#include "experiments/verb.h"

namespace ring {

namespace {

std::string version_text() { return fmt::format("ringscope {}", kVersion); }

std::string_view kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRunFailed:
      return "run failed";
    case ErrorKind::kUsage:
      return "usage";
    case ErrorKind::kWrongResult:
      return "wrong result";
    case ErrorKind::kUnavailable:
      return "unavailable";
    case ErrorKind::kInterrupted:
      return "interrupted";
  }
  return "";
}

std::string nearest_of(const std::vector<std::string>& names, std::string_view word) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return nearest_spelling(word, views.data(), static_cast<int>(views.size()));
}

std::vector<std::string> verb_names(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* verb : root.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

std::string verb_list(const CLI::App& root) {
  return fmt::format("verbs are {}", fmt::join(verb_names(root), ", "));
}

std::string nearest_option(const CLI::App& verb, std::string_view word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return nearest_of(names, word);
}

/// Refuses the first word that nothing could be made of.
[[noreturn]] void refuse_words(const CLI::App& root) {
  const auto chosen = root.get_subcommands();
  const std::vector<std::string> before = root.remaining(false);
  const std::string word = before.empty() ? chosen.at(0)->remaining(true).at(0) : before[0];
  const bool is_option = word.size() > 1 && word[0] == '-';
  if (!before.empty() && is_option) {
    throw_usage(fmt::format("unknown option {}", word),
                "options come after the verb: ringscope VERB [options]");
  }
  if (word == "help") {
    throw_usage("there is no verb help",
                "ringscope --help lists the verbs, ringscope VERB --help the options of one");
  }
  if (!before.empty()) {
    const std::string near = nearest_of(verb_names(root), word);
    throw_usage(fmt::format("unknown verb {}", word),
                near.empty() ? verb_list(root) : fmt::format("did you mean {}?", near));
  }
  const std::string verb = chosen[0]->get_name();
  const std::string help = fmt::format("see ringscope {} --help", verb);
  if (!is_option) throw_usage(fmt::format("{} does not take the argument {}", verb, word), help);
  const std::string near = nearest_option(*chosen[0], word.substr(0, word.find('=')));
  throw_usage(fmt::format("{} has no option {}", verb, word),
              near.empty() ? help : fmt::format("did you mean {}?", near));
}

/// Refuses options that are known but used in a wrong way.
[[noreturn]] void refuse_form(const CLI::App& root, const CLI::ParseError& error) {
  const auto chosen = root.get_subcommands();
  const std::string help =
      fmt::format("see ringscope {}--help", chosen.empty() ? "" : chosen.back()->get_name() + " ");
  const std::string message = error.what();
  const std::string option = message.substr(0, message.find_first_of(": "));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    if (message.find("At Most") != std::string::npos) {
      throw_usage(option + " is given more than once");
    }
    if (message.find("override") != std::string::npos) {
      throw_usage("--" + option + " takes no value");
    }
    throw_usage(option + " needs a value");
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    throw_usage(message.substr(0, message.find(' ')) + " is missing", help);
  }
  throw_usage(message, help);
}

void report(Console& console, const std::string& message, const std::string& hint) {
  const Style& style = console.talk_style();
  console.note(style.paint(Tone::kBad, "error: ") + message);
  if (!hint.empty()) console.note(style.paint(Tone::kDim, " hint: ") + hint);
}

/// Says what went wrong on stderr and, with JSON, as the document too.
int fail(Console& console, ErrorKind kind, const std::string& message, const std::string& hint) {
  report(console, message, hint);
  if (console.is_json() && !console.has_printed_document()) {
    Json document = json_document("error");
    document["error"] = kind_name(kind);
    document["message"] = message;
    document["hint"] = hint;
    document["exit_code"] = exit_code(kind);
    console.print_document(document);
  }
  return exit_code(kind);
}

/// Calls `body` and turns what it throws into a message and an exit code: the one place for that.
template <typename Body>
int guarded(Console& console, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    return fail(console, error.kind(), error.what(), error.hint());
  } catch (const std::bad_alloc&) {
    return fail(console, ErrorKind::kRunFailed, "out of memory",
                "a smaller --seq, --heads or --batch needs less");
  } catch (const std::exception& error) {
    return fail(console, ErrorKind::kRunFailed, fmt::format("unexpected: {}", error.what()),
                "this is a fault of ringscope itself");
  }
}

struct CommandLine {
  CLI::App root{"Runs ring attention for real and predicts it before it runs.", "ringscope"};
  std::vector<std::unique_ptr<Verb>> verbs = make_verbs();
  bool is_json = false;

  CommandLine() {
    root.set_help_flag("-h,--help", "Show this text");
    root.set_version_flag("--version", version_text(), "Show the version");
    root.require_subcommand(0, 1);
    for (const auto& verb : verbs) {
      CLI::App* app = root.add_subcommand(std::string(verb->name()), std::string(verb->summary()));
      VerbOptions options(*app);
      verb->declare(options);
      options.heading("Output");
      app->set_help_flag("-h,--help", "Show this text")->group("Output");
      options.flag("--json", is_json, "Print one JSON document");
    }
  }

  Verb* chosen() const {
    for (const auto& verb : verbs) {
      if (root.got_subcommand(std::string(verb->name()))) return verb.get();
    }
    return nullptr;
  }
};

/// Parses; returns false when help or version was asked for and printed.
bool parse(CommandLine& line, const std::vector<std::string>& arguments, Console& console) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    line.root.parse(std::move(reversed));
    return true;
  } catch (const CLI::CallForHelp&) {
    const auto chosen = line.root.get_subcommands();
    console.print_raw(chosen.empty() ? program_help(line.root) : verb_help(*chosen.back()));
  } catch (const CLI::CallForVersion&) {
    console.print_raw(version_text() + "\n");
  } catch (const CLI::ExtrasError&) {
    refuse_words(line.root);
  } catch (const CLI::ParseError& error) {
    refuse_form(line.root, error);
  }
  return false;
}

}  // namespace

int run_app(const std::vector<std::string>& arguments, Console& console,
            const std::function<const std::atomic<bool>&()>& catch_interrupts) {
  // Bad options are reported before they are all known, so JSON is looked for first.
  if (std::find(arguments.begin(), arguments.end(), "--json") != arguments.end()) {
    console.use_json();
  }
  const int code = guarded(console, [&] {
    CommandLine line;
    if (!parse(line, arguments, console)) return 0;
    Verb* verb = line.chosen();
    if (verb == nullptr) throw_usage("no verb given", verb_list(line.root));
    const std::atomic<bool> never = false;
    VerbContext context{console, verb->has_partial_results() ? catch_interrupts() : never};
    return verb->run(context);
  });
  const int written = guarded(console, [&] {
    console.finish();
    return 0;
  });
  return code != 0 ? code : written;
}

}  // namespace ring
