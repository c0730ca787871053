#include "core/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace ring {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kRunFailed:
      return 1;
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kWrongResult:
      return 3;
    case ErrorKind::kUnavailable:
      return 4;
    case ErrorKind::kInterrupted:
      return 130;
  }
  return 1;
}

void throw_usage(const std::string& message, std::string hint) {
  throw Error(ErrorKind::kUsage, message, std::move(hint));
}

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "ringscope: internal error: %s does not hold (%s:%d)\n", expression, file,
               line);
  std::abort();
}

namespace {

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_spelling(std::string_view word, const std::string_view* allowed, int count) {
  std::string_view best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (int i = 0; i < count; ++i) {
    const size_t distance = edit_distance(word, allowed[i]);
    if (distance < best_distance) {
      best_distance = distance;
      best = allowed[i];
    }
  }
  return std::string(best);
}

}  // namespace ring
