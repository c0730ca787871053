// NCCL INFO logs: ranks, rings, channels and transports of a job, as NCCL itself chose them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/formats/findings.h"

namespace ring {

struct NcclRank {
  int rank = 0;
  std::string host;    ///< Empty when the lines have no prefix.
  int cuda_dev = -1;   ///< As the process counts.
  int nvml_dev = -1;   ///< As the host counts: the physical GPU.
  std::string bus_id;  ///< Hexadecimal, as logged.
};

/// A connection between two ranks on a channel.
struct NcclHop {
  int channel = 0;
  int from = 0, to = 0;
  std::string via;  ///< "P2P/CUMEM/read", "NET/Socket/0".
  bool operator<(const NcclHop& other) const {
    return std::tie(channel, from, to, via) <
           std::tie(other.channel, other.from, other.to, other.via);
  }
};

struct NcclInfoLog {
  int ranks = 0;  ///< As stated; 0: not stated.
  int nodes = 0;  ///< As stated or by the hosts of the lines; 0: not known.
  std::map<int, NcclRank> rank_of;
  /// Order of ranks in the ring of each channel; shorter than `ranks` where the log is cut.
  std::map<int, std::vector<int>> ring_of_channel;
  int channels = 0;      ///< Of collectives; 0: not stated.
  int p2p_channels = 0;  ///< 0: not stated.
  int p2p_per_peer = 0;
  std::set<NcclHop> ring_hops, tree_hops, p2p_hops;
  std::string version, network;  ///< "2.19.3", "IB"; empty: not stated.
  bool is_gdr_off = false;       ///< A line says that GPUDirect RDMA is disabled.
  Findings findings;

  /// All ring orders are there and hold every rank.
  bool has_whole_rings() const;
};

/// Lines of several processes may be mixed, and output of the application between them. Throws
/// Error(kUsage) when no line is one of NCCL's.
NcclInfoLog parse_nccl_info(std::string_view text, const std::string& file);

}  // namespace ring
