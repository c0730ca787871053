// NcclLog: what NCCL says about itself while this lives: channels, transports, network.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace ring::cuda {

/// Makes NCCL write its INFO log into a file of its own, unless the environment says otherwise
/// (NCCL_DEBUG); then that file is read, where NCCL_DEBUG_FILE names one. NCCL reads the
/// environment when its first communicator is made.
class NcclLog {
 public:
  NcclLog();
  NcclLog(const NcclLog&) = delete;
  NcclLog& operator=(const NcclLog&) = delete;
  ~NcclLog();

  /// For the context of a profile or result: channels, network, and the NCCL_ variables that were
  /// set. Nothing of what the log does not tell.
  std::map<std::string, std::string> facts() const;

 private:
  std::string path_;
  bool is_own_ = false;
  std::string environment_;
};

/// What a log tells; nothing when it is not one.
std::map<std::string, std::string> nccl_log_facts(std::string_view log);

}  // namespace ring::cuda
