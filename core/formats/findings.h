// Findings: what a reader of somebody's file found, assumed, could not know, or left aside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ring {

enum class FindingKind {
  kFound,    ///< Stated by the file.
  kAssumed,  ///< Not in the file; the usual default is taken, and said so.
  kUnknown,  ///< Not in the file and not guessed.
  kIgnored,  ///< In the file, but of no use here or not to be trusted.
};
std::string_view name(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::kFound;
  std::string text;  ///< One sentence without a full stop.
  int64_t line = 0;  ///< Line of the file, from 1; 0 when it stands for the whole file.
};

using Findings = std::vector<Finding>;

/// Adds a finding that stands for the whole file.
void add_finding(Findings& findings, FindingKind kind, std::string text);

/// True when one finding of this kind contains the text.
bool has_finding(const Findings& findings, FindingKind kind, std::string_view text);

}  // namespace ring
