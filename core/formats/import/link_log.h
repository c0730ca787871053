// Link logs: bandwidth and latency between devices, as small test programs print them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/findings.h"

namespace ring {

enum class LinkFigureKind {
  kOneWay,    ///< Bytes per second in one direction.
  kBothWays,  ///< Bytes per second of both directions together.
  kLatency,   ///< Seconds.
};

struct LinkFigure {
  LinkFigureKind kind = LinkFigureKind::kOneWay;
  std::string from, to;    ///< "gpu0", "cpu", "local", ...; equal ends are within a device.
  double value = 0;        ///< Bytes per second, or seconds.
  int64_t size_bytes = 0;  ///< Of the message; 0: not stated.
  std::string how;         ///< "P2P=Enabled", "write by sm", ...
  int64_t line = 0;
};

struct LinkLog {
  std::string tool;
  std::vector<std::string> devices;  ///< As listed: "GeForce RTX 3090".
  bool has_peer_access = false;      ///< Some pair of different GPUs may access each other.
  bool knows_peer_access = false;
  std::vector<LinkFigure> figures;
  Findings findings;
};

/// Each throws Error(kUsage) with file:line when the file is not of its tool, or contradicts
/// itself.
LinkLog parse_p2p_bandwidth(std::string_view text, const std::string& file);
LinkLog parse_nvbandwidth(std::string_view text, const std::string& file);
LinkLog parse_perftest(std::string_view text, const std::string& file);
LinkLog parse_superbench(std::string_view text, const std::string& file);
/// Lines "SIZE n, REAL_BD x GB/s, BD/PAIR y GB/s, time t s, comm_vol v" of pair exchanges.
LinkLog parse_pair_bandwidth(std::string_view text, const std::string& file);

}  // namespace ring
