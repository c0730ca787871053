#include "experiments/help.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <utility>
#include <vector>

namespace ring {

namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

/// Lines of a right text after its first stand below it.
std::string two_columns(const Rows& rows, size_t left_columns) {
  std::string text;
  for (const auto& [left, right] : rows) {
    std::string lead = left;
    size_t begin = 0;
    while (begin <= right.size()) {
      const size_t end = std::min(right.find('\n', begin), right.size());
      text += fmt::format("  {:<{}}  {}\n", lead, left_columns, right.substr(begin, end - begin));
      lead.clear();
      begin = end + 1;
    }
  }
  return text;
}

size_t widest(const Rows& rows) {
  size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  return width;
}

/// "-o, --output FILE"; options without a short name leave its place blank.
std::string option_text(const CLI::Option& option) {
  std::string text = option.get_snames().empty() ? "    " : "-" + option.get_snames()[0] + ", ";
  text += "--" + option.get_lnames().at(0);
  if (!option.get_option_text().empty()) text += " " + option.get_option_text();
  return text;
}

Rows option_rows(const CLI::App& app, const std::string& heading) {
  Rows rows;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->get_group() != heading) continue;
    rows.emplace_back(option_text(*option), option->get_description());
  }
  return rows;
}

}  // namespace

std::string program_help(const CLI::App& root) {
  Rows verbs;
  for (const CLI::App* verb : root.get_subcommands([](const CLI::App*) { return true; })) {
    verbs.emplace_back(verb->get_name(), verb->get_description());
  }
  const Rows options = option_rows(root, "Options");
  const size_t width = std::max(widest(verbs), widest(options));
  return fmt::format(
      "{}\n\nUsage: ringscope VERB [options]\n\nVerbs:\n{}\nOptions:\n{}\n"
      "Options of a verb: ringscope VERB --help. A good start: ringscope demo\n",
      root.get_description(), two_columns(verbs, width), two_columns(options, width));
}

std::string verb_help(const CLI::App& verb) {
  std::string usage = "Usage: ringscope " + verb.get_name();
  std::vector<std::pair<std::string, Rows>> sections(1);
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true);
    usage += option->get_required() ? " " + name : " [" + name + "]";
    sections[0].first = "Arguments";
    sections[0].second.emplace_back(name, option->get_description());
  }
  for (const std::string& heading : verb.get_groups()) {
    sections.emplace_back(heading, option_rows(verb, heading));
  }
  size_t width = 0;
  for (const auto& section : sections) width = std::max(width, widest(section.second));
  std::string text = fmt::format("{}\n\n{} [options]\n", verb.get_description(), usage);
  for (const auto& [heading, rows] : sections) {
    if (!rows.empty()) text += fmt::format("\n{}:\n{}", heading, two_columns(rows, width));
  }
  if (!verb.get_footer().empty()) text += "\n" + verb.get_footer() + "\n";
  return text;
}

}  // namespace ring
