// Questions: what people ask of a ring first, each answered in a sentence or two.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study.h"
#include "sim/sweep.h"

namespace ring {

enum class Question { kHiding, kLateRank, kDepth, kLink };
inline constexpr Question kQuestions[] = {Question::kHiding, Question::kLateRank, Question::kDepth,
                                          Question::kLink};
/// "At which block size does the hop stop hiding?"
std::string_view text_of(Question question);

/// Communication hides where at most this share of the run is exposed.
inline constexpr double kHidesBelow = 0.01;
/// The exposed share of the makespan; 0 for a run of no time.
double exposed_share(const Metrics& metrics);

/// What is simulated for the answers; points that failed keep their errors.
struct QuestionFacts {
  SweepPoint now;
  std::vector<SweepPoint> blocks;  ///< Block sizes at the depth of now, ascending; now among them.
  std::vector<SweepPoint> depths;  ///< Depths at the block size of now, ascending; now among them.
  SweepPoint twice;                ///< All links twice as fast.
};

/// A few dozen simulations, without noise. Throws Error(kInterrupted) when stopped.
QuestionFacts question_facts(const Study& study, const std::stop_token& stop = {});

struct Answer {
  Question question = Question::kHiding;
  std::string text;
  int rank = -1;  ///< The rank that it is about; -1: of none.
};

Answer answer_hiding(const QuestionFacts& facts);
/// Of the run that was simulated, with its disturbances.
Answer answer_late_rank(const Study& study);
Answer answer_depth(const QuestionFacts& facts);
Answer answer_link(const QuestionFacts& facts);

/// All of them, in the order of kQuestions. Throws as `question_facts`.
std::vector<Answer> answer_questions(const Study& study, const std::stop_token& stop = {});

}  // namespace ring
