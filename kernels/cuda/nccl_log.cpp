#include "kernels/cuda/nccl_log.h"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/formats/file_io.h"
#include "core/formats/import/nccl_info_log.h"
#include "core/paths.h"

namespace ring::cuda {
namespace {

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

/// NCCL puts the host for %h and the process for %p.
std::string expanded(const char* path) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::string_view name = host;
  name = name.substr(0, name.find('.'));
  return replaced(replaced(path, "%h", std::string(name)), "%p", std::to_string(getpid()));
}

/// "NCCL_MAX_NCHANNELS=4, NCCL_P2P_LEVEL=NVL", without what only concerns the log.
std::string nccl_variables() {
  std::set<std::string> set;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (variable.starts_with("NCCL_") && !variable.starts_with("NCCL_DEBUG")) set.emplace(variable);
  }
  return fmt::format("{}", fmt::join(set, ", "));
}

}  // namespace

NcclLog::NcclLog() : environment_(nccl_variables()) {
  if (std::getenv("NCCL_DEBUG") != nullptr) {
    if (const char* const file = std::getenv("NCCL_DEBUG_FILE")) path_ = expanded(file);
    return;
  }
  std::error_code unknown;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(unknown);
  if (unknown) return;
  path_ = (folder / fmt::format("ringscope-nccl-{}.log", getpid())).string();
  is_own_ = true;
  setenv("NCCL_DEBUG", "INFO", 1);
  setenv("NCCL_DEBUG_FILE", path_.c_str(), 1);
}

NcclLog::~NcclLog() {
  if (!is_own_) return;
  unsetenv("NCCL_DEBUG");
  unsetenv("NCCL_DEBUG_FILE");
  std::error_code nobody_minds;
  std::filesystem::remove(path_, nobody_minds);
}

std::map<std::string, std::string> NcclLog::facts() const {
  std::map<std::string, std::string> facts;
  if (!path_.empty() && file_exists(path_)) facts = nccl_log_facts(read_file(path_));
  if (!environment_.empty()) facts["nccl variables"] = environment_;
  return facts;
}

std::map<std::string, std::string> nccl_log_facts(std::string_view log) {
  std::map<std::string, std::string> facts;
  try {
    const NcclInfoLog info = parse_nccl_info(log, "the log of NCCL");
    if (info.channels > 0) facts["nccl channels"] = std::to_string(info.channels);
    if (info.p2p_channels > 0)
      facts["nccl message channels"] =
          fmt::format("{}, {} a peer", info.p2p_channels, info.p2p_per_peer);
    if (!info.network.empty()) facts["nccl network"] = info.network;
    std::set<std::string> ways;
    for (const auto* hops : {&info.p2p_hops, &info.ring_hops}) {
      for (const NcclHop& hop : *hops) ways.insert(hop.via);
    }
    if (!ways.empty()) facts["nccl transports"] = fmt::format("{}", fmt::join(ways, ", "));
  } catch (const Error&) {
    // Another NCCL may write otherwise; what it says is a fact less then.
  }
  return facts;
}

}  // namespace ring::cuda
