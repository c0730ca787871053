#include "core/topology_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/formats/file_io.h"

namespace ring {
namespace {

constexpr NodeKind kKinds[] = {NodeKind::kGpu,        NodeKind::kCore, NodeKind::kSwitch,
                               NodeKind::kPcieSwitch, NodeKind::kNic,  NodeKind::kHost};

class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  Shape read(const toml::table& root) {
    require_keys(root, {"name", "ring", "node", "link"});
    shape_.name = root.contains("name") ? string_of(root, "name") : std::string("topology");
    for (const toml::table* node : tables(root, "node")) add_node(*node);
    for (const toml::table* link : tables(root, "link")) add_link(*link);
    place(root);
    shape_.provenance["links"] = fmt::format("as given in {}", file_);
    return std::move(shape_);
  }

 private:
  [[noreturn]] void fail(const toml::node& at, const std::string& message,
                         std::string hint = {}) const {
    throw_usage(fmt::format("{}:{}: {}", file_, at.source().begin.line, message), std::move(hint));
  }

  void require_keys(const toml::table& table,
                    std::initializer_list<std::string_view> allowed) const {
    const std::vector<std::string_view> names(allowed);
    for (const auto& [key, value] : table) {
      if (std::find(names.begin(), names.end(), key.str()) != names.end()) continue;
      const std::string near =
          nearest_spelling(key.str(), names.data(), static_cast<int>(names.size()));
      fail(value,
           fmt::format("unknown key '{}'{}", key.str(),
                       near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
           fmt::format("allowed keys are {}", fmt::join(names, ", ")));
    }
  }

  std::vector<const toml::table*> tables(const toml::table& root, std::string_view key) const {
    std::vector<const toml::table*> found;
    const toml::node* list = root.get(key);
    if (list == nullptr) return found;
    if (!list->is_array_of_tables()) {
      fail(*list, fmt::format("'{0}' must be tables, each headed [[{0}]]", key));
    }
    for (const toml::node& item : *list->as_array()) found.push_back(item.as_table());
    return found;
  }

  const toml::node& require(const toml::table& table, std::string_view key) const {
    const toml::node* value = table.get(key);
    if (value == nullptr) fail(table, fmt::format("'{}' is missing here", key));
    return *value;
  }

  std::string string_of(const toml::node& value, std::string_view key) const {
    const auto text = value.value<std::string>();
    if (!value.is_string() || text->empty()) {
      fail(value, fmt::format("'{}' must be a text in quotes", key));
    }
    return *text;
  }
  std::string string_of(const toml::table& table, std::string_view key) const {
    return string_of(require(table, key), key);
  }

  /// Runs a parse function of core/units and puts file and line before what it throws.
  template <typename Parse>
  auto quantity(const toml::table& table, std::string_view key, const Parse& parse) const {
    const toml::node& value = require(table, key);
    const std::string text = string_of(value, key);
    try {
      return parse(text, std::string(key));
    } catch (const Error& error) {
      fail(value, error.what(), error.hint());
    }
  }

  void add_node(const toml::table& table) {
    require_keys(table, {"name", "kind", "host", "backplane"});
    Node node;
    node.name = string_of(table, "name");
    node.kind = kind_of(require(table, "kind"));
    if (const toml::node* host = table.get("host")) {
      const auto number = host->value<int64_t>();
      if (!host->is_integer() || *number < -1 || *number > (1 << 30)) {
        fail(*host, "'host' must be a number, 0 or greater, or -1 for what is between hosts");
      }
      node.host = static_cast<int>(*number);
    }
    if (table.contains("backplane")) {
      node.backplane_bytes_per_s = quantity(table, "backplane", parse_bandwidth);
    }
    const std::string name = node.name;
    if (!numbers_.emplace(name, std::ssize(shape_.topology.nodes())).second) {
      fail(table, fmt::format("there is a node '{}' already", name));
    }
    shape_.topology.add_node(std::move(node));
  }

  NodeKind kind_of(const toml::node& value) const {
    const std::string text = string_of(value, "kind");
    std::vector<std::string_view> names;
    for (const NodeKind kind : kKinds) {
      if (name(kind) == text) return kind;
      names.push_back(name(kind));
    }
    const std::string near = nearest_spelling(text, names.data(), static_cast<int>(names.size()));
    fail(value,
         fmt::format("there is no kind '{}'{}", text,
                     near.empty() ? "" : fmt::format(", did you mean '{}'?", near)),
         fmt::format("kinds are {}", fmt::join(names, ", ")));
  }

  int node_number(const toml::node& value, std::string_view key) const {
    const std::string name = string_of(value, key);
    const auto at = numbers_.find(name);
    if (at != numbers_.end()) return static_cast<int>(at->second);
    fail(value, fmt::format("there is no node '{}'", name),
         "every node needs a [[node]] of its own");
  }

  void add_link(const toml::table& table) {
    require_keys(table, {"between", "from", "to", "bandwidth", "latency", "class", "half-duplex"});
    const double bytes_per_s = quantity(table, "bandwidth", parse_bandwidth);
    const Picoseconds latency_ps = quantity(table, "latency", parse_time);
    const std::string link_class =
        table.contains("class") ? string_of(table, "class") : std::string("link");
    const bool is_half_duplex = half_duplex_of(table);
    try {
      if (table.contains("between")) {
        const auto [a, b] = ends_of(table);
        shape_.topology.connect(a, b, bytes_per_s, latency_ps, link_class, is_half_duplex);
      } else {
        const int from = node_number(require(table, "from"), "from");
        const int to = node_number(require(table, "to"), "to");
        shape_.topology.add_link({from, to, bytes_per_s, latency_ps, -1, link_class, false});
      }
    } catch (const Error& error) {
      const std::string message = error.what();
      if (message.starts_with(file_)) throw;
      fail(table, message, error.hint());
    }
  }

  std::pair<int, int> ends_of(const toml::table& table) const {
    const toml::node& between = require(table, "between");
    if (table.contains("from") || table.contains("to")) {
      fail(between, "'between' stands for both directions; leave out 'from' and 'to'");
    }
    const toml::array* ends = between.as_array();
    if (ends == nullptr || ends->size() != 2) {
      fail(between, "'between' must be two node names: [\"a\", \"b\"]");
    }
    return {node_number((*ends)[0], "between"), node_number((*ends)[1], "between")};
  }

  bool half_duplex_of(const toml::table& table) const {
    const toml::node* value = table.get("half-duplex");
    if (value == nullptr) return false;
    if (!value->is_boolean()) fail(*value, "'half-duplex' must be true or false");
    const bool is_half_duplex = *value->value<bool>();
    if (is_half_duplex && !table.contains("between")) {
      fail(*value, "'half-duplex' needs 'between': a single direction shares with nothing");
    }
    return is_half_duplex;
  }

  void place(const toml::table& root) {
    const toml::node* ring = root.get("ring");
    if (ring == nullptr) {
      for (size_t n = 0; n < shape_.topology.nodes().size(); ++n) {
        const NodeKind kind = shape_.topology.nodes()[n].kind;
        if (kind == NodeKind::kGpu || kind == NodeKind::kCore) {
          shape_.processors.push_back(static_cast<int>(n));
        }
      }
    } else {
      const toml::array* names = ring->as_array();
      if (names == nullptr) fail(*ring, "'ring' must be a list of node names");
      for (const toml::node& name : *names) {
        shape_.processors.push_back(node_number(name, "ring"));
      }
    }
    if (shape_.processors.empty()) {
      fail(root, "there is no node to place ranks on",
           "give at least one node of kind gpu or core");
    }
  }

  std::string file_;
  Shape shape_;
  std::map<std::string, std::ptrdiff_t> numbers_;
};

}  // namespace

Shape parse_topology(std::string_view text, std::string_view file) {
  try {
    return Reader(file).read(toml::parse(text));
  } catch (const toml::parse_error& error) {
    throw_usage(fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()),
                "see docs/topology.md for the format");
  }
}

Shape read_topology_file(const std::string& path) { return parse_topology(read_file(path), path); }

}  // namespace ring
