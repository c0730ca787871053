#include "experiments/why_json.h"

#include <fmt/format.h>

#include "core/error.h"

namespace ring {
namespace {

std::string_view name_of(SegmentKind kind) {
  switch (kind) {
    case SegmentKind::kOp:
      return "op";
    case SegmentKind::kLaunch:
      return "launch";
    case SegmentKind::kStart:
      return "start";
  }
  return "?";
}

std::string id_text(OpId id) { return fmt::format("r{}:{}", id.rank, id.index); }

Json blame_json(const Why& why, const Machine* machine) {
  Json list = Json::array();
  for (const BlameItem& item : why.blame.items) {
    Json entry = {
        {"kind", name(item.kind)},
        {"time_ps", item.time_ps},
        {"share", static_cast<double>(item.time_ps) / static_cast<double>(why.makespan_ps)}};
    if (item.rank >= 0) entry["rank"] = item.rank;
    if (item.peer >= 0) entry["peer"] = item.peer;
    if (item.link >= 0) entry["link"] = link_of(item, machine);
    list.push_back(std::move(entry));
  }
  return list;
}

Json ranks_json(const Why& why) {
  Json list = Json::array();
  for (const RankAccount& rank : why.account.ranks) {
    Json bubbles = Json::object();
    for (int k = 0; k < kBubbleKinds; ++k) {
      bubbles[std::string(name(static_cast<BubbleKind>(k)))] =
          rank.bubble_ps[static_cast<size_t>(k)];
    }
    list.push_back({{"busy_ps", rank.busy_ps}, {"bubbles_ps", std::move(bubbles)}});
  }
  return list;
}

Json path_json(const Why& why) {
  Json list = Json::array();
  for (const PathSegment& segment : why.path.segments) {
    list.push_back({{"op", id_text(segment.op)},
                    {"kind", name_of(segment.kind)},
                    {"begin_ps", segment.begin_ps},
                    {"end_ps", segment.end_ps},
                    {"release", name(segment.release)},
                    {"released_by", id_text(segment.released_by)}});
  }
  return list;
}

/// The bandwidth at which what is exposed over links of this class vanishes, where there is one.
std::optional<double> vanishing_bandwidth(const Why& why, const std::string& link_class) {
  if (!why.what_if) return std::nullopt;
  for (const Remedy& remedy : why.what_if->remedies) {
    if (remedy.link_class == link_class) return remedy.vanishes_at_bytes_per_s;
  }
  return std::nullopt;
}

Json hops_json(const Why& why, const Machine* machine) {
  Json list = Json::array();
  for (const HopExposure& hop : why.account.hops) {
    Json entry = {{"from", hop.from},
                  {"to", hop.to},
                  {"exposed_ps", hop.communication_ps},
                  {"contention_ps", hop.contention_ps}};
    if (machine != nullptr && hop.from >= 0) {
      if (const auto link = narrowest_link(*machine, hop.from, hop.to)) {
        entry["link_class"] = link->link_class;
        entry["bytes_per_s"] = link->bytes_per_s;
        const auto vanishing = vanishing_bandwidth(why, link->link_class);
        entry["vanishes_at_bytes_per_s"] = vanishing ? Json(*vanishing) : Json();
      }
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json what_if_json(const WhatIf& answer) {
  Json effects = Json::array();
  for (const Effect& effect : answer.effects) {
    Json entry = {{"parameter", effect.parameter}, {"change", effect.change}};
    if (effect.can_finish) {
      entry["makespan_ps"] = effect.makespan_ps;
      entry["relative"] = effect.relative;
    } else {
      entry["error"] = effect.why_not;
    }
    effects.push_back(std::move(entry));
  }
  Json remedies = Json::array();
  for (const Remedy& remedy : answer.remedies) {
    Json entry = {{"link_class", remedy.link_class},
                  {"exposed_ps", remedy.exposed_ps},
                  {"bytes_per_s", remedy.bytes_per_s},
                  {"vanishes_at_bytes_per_s", nullptr}};
    if (remedy.vanishes_at_bytes_per_s) {
      entry["vanishes_at_bytes_per_s"] = *remedy.vanishes_at_bytes_per_s;
    }
    remedies.push_back(std::move(entry));
  }
  Json document = {{"baseline_ps", answer.baseline_ps},
                   {"effects", std::move(effects)},
                   {"remedies", std::move(remedies)}};
  if (answer.block) {
    document["block"] = {{"tokens", answer.block->block_tokens},
                         {"exposed_share", answer.block->exposed_share},
                         {"vanishes_at_tokens", nullptr},
                         {"best_tokens", answer.block->best_tokens},
                         {"best_relative", answer.block->best_relative}};
    if (answer.block->vanishes_at_tokens) {
      document["block"]["vanishes_at_tokens"] = *answer.block->vanishes_at_tokens;
    }
  }
  return document;
}

}  // namespace

Json why_json(const Why& why, const Machine* machine) {
  Json by_kind = Json::object();
  for (int k = 0; k < kBlameKinds; ++k) {
    by_kind[std::string(name(static_cast<BlameKind>(k)))] =
        why.blame.by_kind_ps[static_cast<size_t>(k)];
  }
  Json document = {{"origin", why.origin == TimelineOrigin::kMeasured ? "measured" : "predicted"},
                   {"is_complete", why.is_complete},
                   {"makespan_ps", why.makespan_ps},
                   {"sentences", why.sentences},
                   {"blame", blame_json(why, machine)},
                   {"blame_by_kind_ps", std::move(by_kind)},
                   {"ranks", ranks_json(why)},
                   {"hops", hops_json(why, machine)},
                   {"critical_path", path_json(why)},
                   {"slack_ps", why.slack_ps}};
  if (why.what_if) document["what_if"] = what_if_json(*why.what_if);
  if (!why.what_if_missing.empty()) document["what_if_error"] = why.what_if_missing;
  return document;
}

}  // namespace ring
