// VerbOptions: the options of one verb, declared one by one and read with their units.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"

namespace CLI {
class App;
}

namespace ring {

struct CountLimits {
  int64_t low = 1;
  int64_t high = std::numeric_limits<int64_t>::max();
};

/// Targets must outlive the parse. An option that was not given leaves its target as it is. Bad
/// values throw Error(kUsage) that names the option.
class VerbOptions {
 public:
  explicit VerbOptions(CLI::App& app) : app_(app) {}

  /// Heading under which --help lists the options declared next.
  void heading(std::string text) { heading_ = std::move(text); }

  void flag(const std::string& names, bool& target, const std::string& help);
  void text(const std::string& names, std::optional<std::string>& target,
            const std::string& placeholder, const std::string& help);
  void count(const std::string& names, std::optional<int64_t>& target, const std::string& help,
             CountLimits limits = {});
  void bandwidth(const std::string& names, std::optional<double>& target, const std::string& help);
  void time(const std::string& names, std::optional<Picoseconds>& target, const std::string& help);
  /// An argument without a name, which must be given.
  void argument(const std::string& name, std::string& target, const std::string& help);
  /// One or more of them.
  void arguments(const std::string& name, std::vector<std::string>& targets,
                 const std::string& help);
  /// One that may be left out.
  void optional_argument(const std::string& name, std::optional<std::string>& target,
                         const std::string& help);
  /// Text below the options in --help.
  void footer(const std::string& text);

 private:
  CLI::App& app_;
  std::string heading_ = "Options";
};

}  // namespace ring
