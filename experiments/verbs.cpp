#include "experiments/verb.h"

// A new verb is a file in experiments/verbs that defines `make_NAME_verb`, and a line here.
#define RING_VERBS(VERB) \
  VERB(demo)             \
  VERB(env)              \
  VERB(calibrate)        \
  VERB(machines)         \
  VERB(simulate)         \
  VERB(validate)         \
  VERB(run)              \
  VERB(compare)          \
  VERB(why)              \
  VERB(trace)            \
  VERB(check)            \
  VERB(import)           \
  VERB(place)            \
  VERB(strategies)       \
  VERB(compare_strategies)

namespace ring {

#define RING_DECLARE_VERB(name) std::unique_ptr<Verb> make_##name##_verb();
RING_VERBS(RING_DECLARE_VERB)

std::vector<std::unique_ptr<Verb>> make_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
#define RING_ADD_VERB(name) verbs.push_back(make_##name##_verb());
  RING_VERBS(RING_ADD_VERB)
  return verbs;
}

}  // namespace ring
