#include "experiments/verb_options.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <functional>

#include "core/error.h"

namespace ring {

namespace {

/// The long name of "-o,--output", for messages.
std::string long_name(const std::string& names) {
  const size_t dashes = names.rfind("--");
  return dashes == std::string::npos ? names : names.substr(dashes);
}

CLI::Option* add_option(CLI::App& app, const std::string& names, const std::string& heading,
                        const std::string& placeholder, const std::string& help,
                        std::function<void(const std::string&)> read) {
  return app.add_option_function<std::string>(names, read, help)
      ->group(heading)
      ->option_text(placeholder);
}

}  // namespace

void VerbOptions::flag(const std::string& names, bool& target, const std::string& help) {
  app_.add_flag(names, target, help)->group(heading_)->disable_flag_override();
}

void VerbOptions::text(const std::string& names, std::optional<std::string>& target,
                       const std::string& placeholder, const std::string& help) {
  add_option(app_, names, heading_, placeholder, help,
             [&target, what = long_name(names)](const std::string& value) {
               if (value.empty()) throw_usage(what + " is empty");
               target = value;
             });
}

void VerbOptions::count(const std::string& names, std::optional<int64_t>& target,
                        const std::string& help, CountLimits limits) {
  const auto read = [&target, limits, what = long_name(names)](const std::string& value) {
    const int64_t count = parse_count(value, what);
    if (count < limits.low) {
      throw_usage(fmt::format("{} is {}, must be at least {}", what, value, limits.low));
    }
    if (count > limits.high) {
      throw_usage(fmt::format("{} is {}, must be at most {}", what, value, limits.high));
    }
    target = count;
  };
  add_option(app_, names, heading_, "N", help, read);
}

void VerbOptions::bandwidth(const std::string& names, std::optional<double>& target,
                            const std::string& help) {
  add_option(app_, names, heading_, "RATE", help,
             [&target, what = long_name(names)](const std::string& value) {
               target = parse_bandwidth(value, what);
             });
}

void VerbOptions::time(const std::string& names, std::optional<Picoseconds>& target,
                       const std::string& help) {
  add_option(app_, names, heading_, "TIME", help,
             [&target, what = long_name(names)](const std::string& value) {
               target = parse_time(value, what);
             });
}

void VerbOptions::argument(const std::string& name, std::string& target, const std::string& help) {
  add_option(app_, name, heading_, "", help, [&target](const std::string& value) {
    target = value;
  })->required();
}

void VerbOptions::arguments(const std::string& name, std::vector<std::string>& targets,
                            const std::string& help) {
  app_.add_option(name, targets, help)->group(heading_)->option_text("")->required();
}

void VerbOptions::optional_argument(const std::string& name, std::optional<std::string>& target,
                                    const std::string& help) {
  add_option(app_, name, heading_, "", help,
             [&target](const std::string& value) { target = value; });
}

void VerbOptions::footer(const std::string& text) { app_.footer(text); }

}  // namespace ring
