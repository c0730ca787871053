#include "sim/why.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "core/slack.h"

namespace ring {

std::string link_of(const BlameItem& item, const Machine* machine) {
  if (item.link < 0 || machine == nullptr) return {};
  return describe_link(machine->topology, item.link);
}

namespace {

/// A cause is worth a sentence from this share of the time on.
constexpr double kWorthSaying = 0.01;
constexpr size_t kMostItems = 3;

std::string share_of(Picoseconds part_ps, Picoseconds whole_ps) {
  return format_percent(static_cast<double>(part_ps) / static_cast<double>(whole_ps));
}

class Teller {
 public:
  Teller(const Why& why, const RingProgram& program, const Timeline& timeline,
         const Machine* machine)
      : why_(why), program_(program), timeline_(timeline), machine_(machine) {}

  std::vector<std::string> tell() {
    say("The {} run takes {}{}.",
        why_.origin == TimelineOrigin::kMeasured ? "measured" : "predicted",
        format_time(why_.makespan_ps),
        why_.is_complete ? "" : " as far as it was recorded; it did not finish");
    std::vector<BlameKind> kinds;
    for (int k = 0; k < kBlameKinds; ++k) kinds.push_back(static_cast<BlameKind>(k));
    std::stable_sort(kinds.begin(), kinds.end(),
                     [&](BlameKind a, BlameKind b) { return why_.blame.of(a) > why_.blame.of(b); });
    for (const BlameKind kind : kinds) {
      if (is_worth_saying(why_.blame.of(kind))) tell_kind(kind);
    }
    tell_communication();
    tell_bubbles();
    if (why_.what_if) tell_what_if(*why_.what_if);
    return std::move(sentences_);
  }

 private:
  template <typename... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    sentences_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  bool is_worth_saying(Picoseconds time_ps) const {
    return static_cast<double>(time_ps) >= kWorthSaying * static_cast<double>(why_.makespan_ps) &&
           time_ps > 0;
  }

  std::vector<BlameItem> items_of(BlameKind kind) const {
    std::vector<BlameItem> items;
    for (const BlameItem& item : why_.blame.items) {
      if (item.kind == kind) items.push_back(item);
    }
    return items;
  }

  void tell_kind(BlameKind kind) {
    const Picoseconds time_ps = why_.blame.of(kind);
    const std::string much =
        fmt::format("{} ({})", format_time(time_ps), share_of(time_ps, why_.makespan_ps));
    const std::vector<BlameItem> items = items_of(kind);
    const BlameItem& first = items.front();
    switch (kind) {
      case BlameKind::kContention:
        return tell_contention(much, items);
      case BlameKind::kImbalance:
        return say("{} is imbalance: {}.", much, late_ranks(items));
      case BlameKind::kLateStart:
        return say("{} passed before rank {} started.", much, first.rank);
      case BlameKind::kHop:
        return say("{} is communication that nothing hides: {}.", much, hops(items));
      case BlameKind::kFill:
        return say("{} fills the pipeline before rank {} can compute: {}.", much, first.rank,
                   hops(items));
      case BlameKind::kDrain:
        return say("{} drains the pipeline after the last computation: {}.", much, hops(items));
      case BlameKind::kCreditWait:
        return say(
            "{} is waiting for a free receive buffer, most on rank {}: a deeper pipeline would "
            "not wait.",
            much, first.rank);
      case BlameKind::kLaunch:
        return say("{} is launch and wake-up, most on rank {}.", much, first.rank);
      case BlameKind::kAttend:
      case BlameKind::kCompute:
      case BlameKind::kMerge:
      case BlameKind::kFinalize:
      case BlameKind::kCopy:
      case BlameKind::kBackward:
      case BlameKind::kGradients:
        return say("{} is {}, most on rank {}.", much, work_name(kind), first.rank);
    }
  }

  static std::string_view work_name(BlameKind kind) {
    return kind == BlameKind::kAttend      ? "attention"
           : kind == BlameKind::kBackward  ? "the backward pass of attention"
           : kind == BlameKind::kGradients ? "delta and sums of gradients"
           : kind == BlameKind::kCompute   ? "computation"
           : kind == BlameKind::kMerge     ? "merging states"
           : kind == BlameKind::kFinalize  ? "finalizing outputs"
                                           : "copying";
  }

  void tell_contention(const std::string& much, const std::vector<BlameItem>& items) {
    const BlameItem& first = items.front();
    const std::string link = link_of(first, machine_);
    if (!link.empty()) {
      return say("{} is contention, most of it on {}, which the hops {} share.", much, link,
                 hops_over(first.link));
    }
    if (first.peer >= 0) {
      return say("{} is contention: the transfer {} -> {} got less than it would alone.", much,
                 first.peer, first.rank);
    }
    say("{} is contention: rank {} computes beside other work on its processor.", much, first.rank);
  }

  /// "0 -> 4, 1 -> 5" for the pairs of ranks whose route uses the link.
  std::string hops_over(int link) const {
    std::set<std::pair<int, int>> pairs;
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      for (const Op& op : program_.rank_programs[static_cast<size_t>(rank)].ops) {
        if (op.kind == OpKind::kSend) pairs.insert({rank, op.peer});
      }
    }
    std::vector<std::string> names;
    for (const auto& [from, to] : pairs) {
      const int a = processor_of(*machine_, from), b = processor_of(*machine_, to);
      if (a == b || !machine_->topology.has_route(a, b)) continue;
      const Route route = machine_->topology.route(a, b);
      if (std::find(route.links.begin(), route.links.end(), link) == route.links.end()) continue;
      names.push_back(fmt::format("{} -> {}", from, to));
    }
    if (names.size() > 8) {
      const size_t more = names.size() - 8;
      names.resize(8);
      names.push_back(fmt::format("{} more", more));
    }
    return fmt::format("{}", fmt::join(names, ", "));
  }

  std::string late_ranks(const std::vector<BlameItem>& items) const {
    std::vector<std::string> parts;
    for (size_t i = 0; i < std::min(items.size(), kMostItems); ++i) {
      if (!is_worth_saying(items[i].time_ps)) break;
      parts.push_back(fmt::format("rank {} is late by {}, computing {} against a mean of {}",
                                  items[i].rank, format_time(items[i].time_ps),
                                  format_time(busy(items[i].rank)), format_time(mean_busy())));
    }
    if (items.size() > parts.size()) {
      parts.push_back(fmt::format("{} ranks by less", items.size() - parts.size()));
    }
    return fmt::format("{}", fmt::join(parts, "; "));
  }

  Picoseconds busy(int rank) const { return why_.account.ranks[static_cast<size_t>(rank)].busy_ps; }
  Picoseconds mean_busy() const {
    Picoseconds sum_ps = 0;
    for (const RankAccount& rank : why_.account.ranks) sum_ps += rank.busy_ps;
    return sum_ps / static_cast<Picoseconds>(why_.account.ranks.size());
  }

  std::string hops(const std::vector<BlameItem>& items) const {
    std::vector<std::string> parts;
    for (size_t i = 0; i < std::min(items.size(), kMostItems); ++i) {
      // A collective of an imported trace names no peer.
      const bool is_hop = items[i].peer != items[i].rank;
      parts.push_back((is_hop ? fmt::format("hop {} -> {} ", items[i].peer, items[i].rank)
                              : fmt::format("collectives of rank {} ", items[i].rank)) +
                      format_time(items[i].time_ps));
    }
    if (items.size() > kMostItems) {
      parts.push_back(fmt::format("and {} more hops", items.size() - kMostItems));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  Picoseconds exposed() const {
    Picoseconds sum_ps = 0;
    for (const HopExposure& hop : why_.account.hops) {
      sum_ps += hop.communication_ps + hop.contention_ps;
    }
    return sum_ps;
  }

  /// Names the block size where communication is exposed.
  void tell_communication() {
    const auto ranks = static_cast<Picoseconds>(why_.account.ranks.size());
    if (!is_worth_saying(exposed() / ranks)) return;
    int64_t messages = 0;
    Picoseconds transfer_ps = 0;
    Bytes bytes = 0;
    for (const Slice& slice : timeline_.slices) {
      if (slice.kind != OpKind::kReceive) continue;
      ++messages;
      transfer_ps += slice.end_ps - slice.start_ps;
      bytes += slice.bytes;
    }
    if (messages == 0) return;
    say("A rank stands still for communication {} of the time: per message of {} the transfer "
        "takes {} while a rank computes {}{}.",
        share_of(exposed() / ranks, why_.makespan_ps), format_bytes(bytes / messages),
        format_time(transfer_ps / messages), format_time(mean_busy() * ranks / messages),
        program_.has_attention
            ? fmt::format(" with blocks of {} tokens", program_.tuning.block_tokens)
            : "");
  }

  void tell_bubbles() {
    std::map<Picoseconds, std::vector<std::string>, std::greater<>> by_time;
    const auto ranks = static_cast<Picoseconds>(why_.account.ranks.size());
    for (int k = 0; k < kBubbleKinds; ++k) {
      const auto kind = static_cast<BubbleKind>(k);
      Picoseconds sum_ps = 0;
      for (const RankAccount& rank : why_.account.ranks) sum_ps += rank.of(kind);
      if (!is_worth_saying(sum_ps / ranks)) continue;
      by_time[sum_ps].push_back(
          fmt::format("{} {}", name(kind), share_of(sum_ps / ranks, why_.makespan_ps)));
    }
    std::vector<std::string> parts;
    for (const auto& [time_ps, texts] : by_time) {
      parts.insert(parts.end(), texts.begin(), texts.end());
    }
    if (parts.empty()) return;
    say("An average rank is busy {} of the time; the rest is {}.",
        share_of(mean_busy(), why_.makespan_ps), fmt::join(parts, ", "));
  }

  void tell_what_if(const WhatIf& answer) {
    std::vector<std::string> parts;
    for (const Effect& effect : answer.effects) {
      if (parts.size() == kMostItems || !effect.can_finish || effect.relative > -0.001) break;
      parts.push_back(fmt::format("{} {}: {}", effect.parameter, effect.change,
                                  format_percent(effect.relative)));
    }
    if (parts.empty()) {
      say("No change of a tenth, of the block size or of the depth would make it faster.");
    } else {
      say("What would help: {}.", fmt::join(parts, "; "));
    }
    for (const Remedy& remedy : answer.remedies) tell_remedy(remedy);
    if (answer.block) tell_block(*answer.block);
  }

  void tell_remedy(const Remedy& remedy) {
    if (remedy.vanishes_at_bytes_per_s) {
      say("Exposed communication over {} would vanish at {} instead of {}.", remedy.link_class,
          format_bandwidth(*remedy.vanishes_at_bytes_per_s), format_bandwidth(remedy.bytes_per_s));
    } else {
      say("No bandwidth makes the communication over {} vanish: its latency, or the lack of "
          "computation beside it, remains.",
          remedy.link_class);
    }
  }

  void tell_block(const BlockRemedy& block) {
    if (block.vanishes_at_tokens) {
      say("Exposed communication would vanish with blocks of {} tokens instead of {}.",
          *block.vanishes_at_tokens, block.block_tokens);
    } else {
      say("No block size makes the exposed communication vanish; the block is {} tokens now.",
          block.block_tokens);
    }
    if (block.best_tokens != block.block_tokens) {
      say("Of the block sizes tried, {} tokens is fastest: {}.", block.best_tokens,
          format_percent(block.best_relative));
    }
  }

  const Why& why_;
  const RingProgram& program_;
  const Timeline& timeline_;
  const Machine* machine_;
  std::vector<std::string> sentences_;
};

}  // namespace

Why explain_run(const RingProgram& program, const Timeline& timeline, const Machine* machine,
                const WhyOptions& options) {
  if (timeline.slices.empty()) throw_usage("the timeline is empty: nothing ran");
  const RunGraph graph(program, timeline);
  const AloneTimes alone = machine == nullptr ? AloneTimes{} : alone_times(graph, *machine);
  Why why;
  why.origin = timeline.origin;
  why.is_complete = timeline.is_complete;
  why.makespan_ps = timeline.makespan_ps();
  if (why.makespan_ps <= 0) throw_usage("the run took no time: there is nothing to explain");
  why.path = critical_path(graph);
  why.blame = blame_path(graph, why.path, alone);
  why.account = account_run(graph, alone);
  const std::vector<Picoseconds> slack = slacks(graph);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const auto first = slack.begin() + graph.node({rank, 0});
    const auto& ops = program.rank_programs[static_cast<size_t>(rank)].ops;
    why.slack_ps.emplace_back(first, first + std::ssize(ops));
  }
  if (machine != nullptr && options.with_what_if) {
    try {
      why.what_if = what_if(program, *machine, options.what_if);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInterrupted) throw;
      why.what_if_missing = error.what();
    }
  }
  why.sentences = Teller(why, program, timeline, machine).tell();
  return why;
}

}  // namespace ring
