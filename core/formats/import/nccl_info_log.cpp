#include "core/formats/import/nccl_info_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/formats/import/text_lines.h"

namespace ring {
namespace {

constexpr int64_t kMostJobRanks = 1 << 20;

/// The number after a word, such as "rank 3"; the words are compared in lower case.
std::optional<int64_t> number_after(const std::vector<std::string_view>& words,
                                    std::string_view key) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (lower(words[i]) == key) return whole_of(words[i + 1]);
  }
  return std::nullopt;
}

int as_int(std::optional<int64_t> value) {
  return value && *value >= 0 && *value < kMostJobRanks ? static_cast<int>(*value) : -1;
}

/// "1[2]" -> rank 1; "[send]" and the like -> nothing.
std::optional<int> rank_of_end(std::string_view word) {
  const auto number = leading_whole(word);
  if (!number || *number >= kMostJobRanks || !contains(word, "[")) return std::nullopt;
  return static_cast<int>(*number);
}

class InfoReader {
 public:
  explicit InfoReader(const std::string& file) : file_(file) {}

  void take(const TextLine& line) {
    const size_t at = line.text.find("NCCL INFO ");
    if (at == std::string::npos) {
      take_other(line);
      return;
    }
    ++info_lines_;
    is_cut_ = line.is_cut;
    prefix_ = trimmed(std::string_view(line.text).substr(0, at));
    const std::string_view said = trimmed(std::string_view(line.text).substr(at + 10));
    if (line.is_cut) add(FindingKind::kIgnored, line.number, "the last line is cut");
    if (said.starts_with("Channel ")) {
      take_channel(said, line.number);
    } else if (said.starts_with("comm ")) {
      take_comm(said);
    } else if (said.starts_with("Connected all rings")) {
      connected_.insert(process());
    } else {
      take_words(said);
    }
  }

  NcclInfoLog finish() {
    if (info_lines_ == 0) {
      throw_usage(file_ + ": no NCCL INFO line in it", "Run with NCCL_DEBUG=INFO.");
    }
    std::set<std::string> hosts;
    for (const auto& [rank, where] : out_.rank_of) {
      if (!where.host.empty()) hosts.insert(where.host);
    }
    const bool knows_all = static_cast<int>(out_.rank_of.size()) == out_.ranks;
    if (out_.nodes == 0 && knows_all) out_.nodes = static_cast<int>(hosts.size());
    if (out_.channels == 0) out_.channels = channels_of_order_;
    describe();
    return std::move(out_);
  }

 private:
  void add(FindingKind kind, int64_t line, std::string text) {
    out_.findings.push_back({kind, std::move(text), line});
  }

  /// "host:pid" of "host:pid:tid [dev]".
  std::string process() const {
    const size_t first = prefix_.find(':');
    if (first == std::string::npos) return {};
    return prefix_.substr(0, prefix_.find(':', first + 1));
  }
  std::string host() const {
    return prefix_.substr(0, std::min(prefix_.find(':'), prefix_.size()));
  }

  void take_other(const TextLine& line) {
    if (trimmed(line.text).empty()) return;
    if (contains(line.text, "busbw") && contains(line.text, "size")) {
      has_table_ = true;
    } else if (!trimmed(line.text).starts_with("#")) {
      ++other_lines_;
    }
    const auto words = words_of(line.text);
    if (words.size() > 8 && whole_of(words[0]) && whole_of(words[1])) has_rows_ = true;
    if (const auto version = text_after(line.text, "NCCL version ")) {
      out_.version = std::string(words_of(*version).empty() ? "" : words_of(*version)[0]);
    }
  }

  void take_comm(std::string_view said) {
    const std::vector<std::string_view> words = words_of(said);
    const int rank = as_int(number_after(words, "rank"));
    const int ranks = as_int(number_after(words, "nranks"));
    if (ranks > 0) out_.ranks = std::max(out_.ranks, ranks);
    out_.nodes = std::max(out_.nodes, as_int(number_after(words, "nnodes")));
    if (rank < 0) return;
    NcclRank& known = out_.rank_of[rank];
    known.rank = rank;
    if (contains(prefix_, ":")) known.host = host();
    known.cuda_dev = std::max(known.cuda_dev, as_int(number_after(words, "cudadev")));
    known.nvml_dev = std::max(known.nvml_dev, as_int(number_after(words, "nvmldev")));
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      if (lower(words[i]) == "busid") known.bus_id = words[i + 1];
    }
  }

  /// "Channel 00/02 : 0 1 2 3" is the order of a ring, "Channel 00/0 : 1[2] -> 2[3] via X" a hop.
  void take_channel(std::string_view said, int64_t line) {
    const std::vector<std::string_view> words = words_of(said);
    if (words.size() < 3) return;
    const auto channel = leading_whole(words[1]);
    if (!channel || *channel > 1024) return;
    const size_t slash = words[1].find('/');
    const int64_t second =
        slash == std::string_view::npos ? 0 : leading_whole(words[1].substr(slash + 1)).value_or(0);
    if (contains(said, "->")) {
      take_hop(static_cast<int>(*channel), second, said, line);
      return;
    }
    std::vector<int> order;
    for (size_t i = 3; i < words.size(); ++i) {
      const auto rank = whole_of(words[i]);
      if (!rank || *rank >= kMostJobRanks) break;
      order.push_back(static_cast<int>(*rank));
    }
    // The last number of a line without an end may be a part of one.
    if (is_cut_ && static_cast<int>(order.size()) != out_.ranks && !order.empty()) order.pop_back();
    if (order.empty()) return;
    channels_of_order_ =
        std::max(channels_of_order_, static_cast<int>(std::min<int64_t>(second, 1024)));
    out_.ring_of_channel[static_cast<int>(*channel)] = std::move(order);
  }

  void take_hop(int channel, int64_t connection, std::string_view said, int64_t line) {
    const std::vector<std::string_view> words = words_of(said);
    const auto arrow = std::find(words.begin(), words.end(), "->");
    if (arrow == words.begin() || arrow + 1 >= words.end()) return;
    const auto from = rank_of_end(*(arrow - 1)), to = rank_of_end(*(arrow + 1));
    const auto via = text_after(said, " via ");
    if (!from || !to || !via || words_of(*via).empty()) {
      add(FindingKind::kIgnored, line, "a connection that is not written out");
      return;
    }
    const NcclHop hop{channel, *from, *to, std::string(words_of(*via)[0])};
    if (is_cut_ && !is_known_way(hop.via)) return;
    if (connection > 0) {
      out_.p2p_hops.insert(hop);
    } else if (connected_.count(process()) > 0) {
      out_.tree_hops.insert(hop);  // A process connects its rings first.
    } else {
      out_.ring_hops.insert(hop);
    }
  }

  bool is_known_way(const std::string& via) const {
    const auto is_it = [&via](const NcclHop& hop) { return hop.via == via; };
    return std::any_of(out_.ring_hops.begin(), out_.ring_hops.end(), is_it) ||
           std::any_of(out_.tree_hops.begin(), out_.tree_hops.end(), is_it) ||
           std::any_of(out_.p2p_hops.begin(), out_.p2p_hops.end(), is_it);
  }

  void take_words(std::string_view said) {
    if (contains(said, "coll channels") && contains(said, "p2p channels")) {
      out_.channels = std::max(0, as_int(leading_whole(said)));
      for (size_t at = 0; at < said.size();) {
        const size_t end = std::min(said.find(',', at), said.size());
        const std::string_view part = trimmed(said.substr(at, end - at));
        const int number = std::max(0, as_int(leading_whole(part)));
        if (contains(part, "per peer")) {
          out_.p2p_per_peer = number;
        } else if (contains(part, "p2p channels")) {
          out_.p2p_channels = number;
        }
        at = end + 1;
      }
    }
    if (const auto network = text_after(said, "Using network ")) out_.network = trimmed(*network);
    if (contains(said, "GPU Direct RDMA Disabled")) out_.is_gdr_off = true;
    if (const auto version = text_after(said, "NCCL version ")) {
      out_.version = std::string(words_of(*version).empty() ? "" : words_of(*version)[0]);
    }
  }

  void describe() {
    if (out_.ranks > 0) {
      add(FindingKind::kFound, 0,
          fmt::format("{} ranks, {} of them described, {} channels", out_.ranks,
                      out_.rank_of.size(), out_.channels));
    } else {
      add(FindingKind::kUnknown, 0, "how many ranks there are");
    }
    describe_places();
    for (const auto& [channel, order] : out_.ring_of_channel) {
      add(FindingKind::kFound, 0,
          fmt::format("channel {}: ring {}{}", channel, fmt::join(order, "-"),
                      static_cast<int>(order.size()) < out_.ranks ? ", then cut" : ""));
    }
    std::set<std::string> ways;
    for (const NcclHop& hop : out_.ring_hops) ways.insert(hop.via);
    if (!ways.empty()) {
      add(FindingKind::kFound, 0, fmt::format("rings go over {}", fmt::join(ways, ", ")));
    }
    if (!out_.tree_hops.empty()) {
      add(FindingKind::kIgnored, 0,
          fmt::format("{} connections after \"Connected all rings\": they belong to trees",
                      out_.tree_hops.size()));
    }
    if (out_.is_gdr_off) add(FindingKind::kFound, 0, "GPUDirect RDMA is off");
    if (out_.ring_of_channel.empty()) {
      add(FindingKind::kUnknown, 0, "the order of the ring");
    } else if (!out_.has_whole_rings()) {
      add(FindingKind::kUnknown, 0, "the rest of the ring: the log is cut");
    }
    if (out_.version.empty()) add(FindingKind::kUnknown, 0, "the version of NCCL");
    if (has_table_ && !has_rows_) {
      add(FindingKind::kUnknown, 0, "results: the header of a test is there, but no row");
    }
    if (other_lines_ > 0) {
      add(FindingKind::kIgnored, 0, fmt::format("{} lines that are not NCCL's", other_lines_));
    }
  }

  /// Which GPU each rank has, host by host.
  void describe_places() {
    constexpr size_t kMostHosts = 8;
    std::map<std::string, std::vector<std::string>> gpus_of;
    for (const auto& [number, rank] : out_.rank_of) {
      if (rank.nvml_dev < 0) continue;
      gpus_of[rank.host].push_back(fmt::format("{} on GPU {}", number, rank.nvml_dev));
    }
    if (gpus_of.size() > kMostHosts) {
      add(FindingKind::kFound, 0, fmt::format("ranks on {} hosts", gpus_of.size()));
      return;
    }
    for (const auto& [host, gpus] : gpus_of) {
      add(FindingKind::kFound, 0,
          fmt::format("{}{}rank {}", host, host.empty() ? "" : ": ", fmt::join(gpus, ", ")));
    }
  }

  const std::string& file_;
  NcclInfoLog out_;
  std::string prefix_;
  std::set<std::string> connected_;  ///< Processes whose rings are connected.
  int64_t info_lines_ = 0, other_lines_ = 0;
  int channels_of_order_ = 0;
  bool has_table_ = false, has_rows_ = false;
  bool is_cut_ = false;  ///< The line at hand has no end.
};

}  // namespace

bool NcclInfoLog::has_whole_rings() const {
  if (ring_of_channel.empty() || ranks == 0) return false;
  if (channels > 0 && static_cast<int>(ring_of_channel.size()) < channels) return false;
  return std::all_of(ring_of_channel.begin(), ring_of_channel.end(), [&](const auto& entry) {
    return static_cast<int>(entry.second.size()) == ranks;
  });
}

NcclInfoLog parse_nccl_info(std::string_view text, const std::string& file) {
  InfoReader reader(file);
  for (const TextLine& line : split_lines(text, file)) reader.take(line);
  return reader.finish();
}

}  // namespace ring
