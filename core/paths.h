// Paths: where RingScope keeps files of its user.
#pragma once

#include <string>

namespace ring {

/// $XDG_CACHE_HOME/ringscope/machine.json, else ~/.cache/ringscope/machine.json.
std::string default_machine_path();
/// The same for the profile of this machine's GPUs: gpu-machine.json.
std::string default_gpu_machine_path();
/// Makes the folders above `path`. Throws Error(kRunFailed).
void make_parent_folders(const std::string& path);
/// The same, and throws where a file could not be put there: before work that would be lost.
void require_place_for(const std::string& path);
/// Throws Error(kUsage) where writing `output` would replace the file that is read.
void require_other_file(const std::string& output, const std::string& input);
bool file_exists(const std::string& path);

}  // namespace ring
