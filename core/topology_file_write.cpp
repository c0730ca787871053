// Writes a topology as the TOML file that people edit.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "core/error.h"
#include "core/formats/json_text.h"
#include "core/topology_file.h"

namespace ring {
namespace {

/// JSON's escapes are TOML's too.
std::string quoted(std::string_view text) { return json_quote(text); }

bool are_two_ways_of_one(const Link& a, const Link& b) {
  return a.from == b.to && a.to == b.from && a.bytes_per_s == b.bytes_per_s &&
         a.latency_ps == b.latency_ps && a.link_class == b.link_class &&
         a.duplex_group == b.duplex_group;
}

class Writer {
 public:
  explicit Writer(const Shape& shape) : shape_(shape) {}

  std::string write() {
    line("name = {}", quoted(shape_.name));
    std::vector<std::string> ring;
    for (const int processor : shape_.processors) ring.push_back(quoted(node(processor).name));
    line("ring = [{}]", fmt::join(ring, ", "));
    for (const Node& node : shape_.topology.nodes()) write_node(node);
    const std::vector<Link>& links = shape_.topology.links();
    for (size_t l = 0; l < links.size(); ++l) {
      const bool is_pair = l + 1 < links.size() && are_two_ways_of_one(links[l], links[l + 1]);
      if (links[l].duplex_group >= 0 && !is_pair) {
        throw_usage("a topology file cannot say which single links share one capacity");
      }
      write_link(links[l], is_pair);
      if (is_pair) ++l;
    }
    return std::move(text_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  const Node& node(int number) const {
    return shape_.topology.nodes()[static_cast<size_t>(number)];
  }

  void write_node(const Node& node) {
    if (!names_.insert(node.name).second) {
      throw_usage(fmt::format("two nodes are called '{}': a topology file cannot tell them apart",
                              node.name));
    }
    line("\n[[node]]\nname = {}\nkind = \"{}\"", quoted(node.name), name(node.kind));
    if (node.host != 0) line("host = {}", node.host);
    if (node.backplane_bytes_per_s > 0) {
      line("backplane = \"{}\"", exact_bandwidth(node.backplane_bytes_per_s));
    }
  }

  void write_link(const Link& link, bool is_pair) {
    if (!(link.bytes_per_s > 0)) {
      throw_usage(fmt::format("the link from {} to {} is down: a topology file cannot say so",
                              node(link.from).name, node(link.to).name));
    }
    const std::string from = quoted(node(link.from).name), to = quoted(node(link.to).name);
    if (is_pair) {
      line("\n[[link]]\nbetween = [{}, {}]", from, to);
    } else {
      line("\n[[link]]\nfrom = {}\nto = {}", from, to);
    }
    line("bandwidth = \"{}\"\nlatency = \"{}\"", exact_bandwidth(link.bytes_per_s),
         exact_time(link.latency_ps));
    line("class = {}", quoted(link.link_class));
    if (is_pair && link.duplex_group >= 0) line("half-duplex = true");
  }

  const Shape& shape_;
  std::string text_;
  std::set<std::string> names_;
};

}  // namespace

std::string topology_toml(const Shape& shape) { return Writer(shape).write(); }

}  // namespace ring
