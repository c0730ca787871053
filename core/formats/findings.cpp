#include "core/formats/findings.h"

#include <algorithm>
#include <utility>

namespace ring {

std::string_view name(FindingKind kind) {
  switch (kind) {
    case FindingKind::kFound:
      return "found";
    case FindingKind::kAssumed:
      return "assumed";
    case FindingKind::kUnknown:
      return "unknown";
    case FindingKind::kIgnored:
      return "ignored";
  }
  return "?";
}

void add_finding(Findings& findings, FindingKind kind, std::string text) {
  findings.push_back({kind, std::move(text), 0});
}

bool has_finding(const Findings& findings, FindingKind kind, std::string_view text) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.kind == kind && finding.text.find(text) != std::string::npos;
  });
}

}  // namespace ring
