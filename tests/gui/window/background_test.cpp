// Work off the GUI thread: the newest wins, and cancelling answers at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>
#include <atomic>

#include "core/error.h"
#include "gui/session/latest_job.h"
#include "gui/session/task.h"

namespace ring::gui {
namespace {

using testing::Each;
using testing::Lt;

constexpr int kPatienceMs = 60'000;

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

TEST(LatestJob, ShowsTheNewestLastAndNothingStaleAfterIt) {
  LatestJob job;
  std::vector<int> shown;
  for (int i = 0; i < 200; ++i) {
    job.start([i, &shown](const JobContext& context) {
      sleep_ms(i % 3);
      context.publish([i, &shown] { shown.push_back(i); });
    });
    if (i % 5 == 0) QTest::qWait(1);
  }
  ASSERT_TRUE(QTest::qWaitFor([&] { return !job.is_busy(); }, kPatienceMs));
  ASSERT_FALSE(shown.empty());
  EXPECT_EQ(shown.back(), 199);
  EXPECT_TRUE(std::is_sorted(shown.begin(), shown.end()));
  EXPECT_LT(shown.size(), 200U) << "every piece was done, none was overtaken";
}

TEST(LatestJob, OldResultThatComesLateIsDropped) {
  LatestJob job;
  std::atomic<bool> has_started = false;
  std::vector<int> shown;
  JobContext old;
  job.start([&](const JobContext& context) {
    old = context;
    has_started = true;
  });
  ASSERT_TRUE(QTest::qWaitFor([&] { return has_started.load(); }, kPatienceMs));
  job.start([&](const JobContext& context) { context.publish([&] { shown.push_back(2); }); });
  ASSERT_TRUE(QTest::qWaitFor([&] { return !job.is_busy(); }, kPatienceMs));
  old.publish([&] { shown.push_back(1); });
  QTest::qWait(20);
  EXPECT_EQ(shown, std::vector<int>{2});
}

TEST(LatestJob, LongWorkIsStoppedWhenOvertaken) {
  LatestJob job;
  std::atomic<bool> was_stopped = false, is_done = false, has_started = false;
  job.start([&](const JobContext& context) {
    has_started = true;
    while (!context.stop.stop_requested()) sleep_ms(1);
    was_stopped = true;
    throw Error(ErrorKind::kInterrupted, "stopped");
  });
  ASSERT_TRUE(QTest::qWaitFor([&] { return has_started.load(); }, kPatienceMs));
  job.start([&](const JobContext&) { is_done = true; });
  ASSERT_TRUE(QTest::qWaitFor([&] { return is_done.load(); }, kPatienceMs));
  EXPECT_TRUE(was_stopped);
}

TEST(LatestJob, CancelDropsWhatWasPublished) {
  LatestJob job;
  std::atomic<bool> is_published = false;
  bool is_shown = false;
  job.start([&](const JobContext& context) {
    context.publish([&] { is_shown = true; });
    is_published = true;
  });
  while (!is_published) sleep_ms(1);
  job.cancel();
  QTest::qWait(20);
  EXPECT_FALSE(is_shown);
  EXPECT_FALSE(job.is_busy());
}

TEST(LatestJob, CanBeDestroyedWhileItWorks) {
  std::atomic<bool> has_started = false;
  {
    LatestJob job;
    job.start([&](const JobContext& context) {
      has_started = true;
      while (!context.stop.stop_requested()) sleep_ms(1);
      context.publish([] { FAIL() << "shown by a job that is gone"; });
    });
    while (!has_started) sleep_ms(1);
  }
  QTest::qWait(10);
}

TEST(Task, TellsProgressAndEnd) {
  Task task;
  const QSignalSpy ended(&task, &Task::ended), progressed(&task, &Task::progressed);
  bool is_shown = false;
  task.start(QStringLiteral("Working"), [&](const TaskContext& context) {
    context.progress(0.5, "half");
    context.publish([&] { is_shown = true; });
  });
  EXPECT_TRUE(task.is_running());
  ASSERT_TRUE(QTest::qWaitFor([&] { return ended.count() == 1; }, kPatienceMs));
  EXPECT_FALSE(ended[0][0].toBool());
  EXPECT_TRUE(is_shown);
  ASSERT_EQ(progressed.count(), 1);
  EXPECT_EQ(progressed[0][1].toString(), QStringLiteral("half"));
  EXPECT_FALSE(task.is_running());
}

TEST(Task, FailureIsTold) {
  Task task;
  const QSignalSpy failed(&task, &Task::failed), ended(&task, &Task::ended);
  task.start(QStringLiteral("Working"),
             [](const TaskContext&) { throw_usage("it broke", "mend it"); });
  ASSERT_TRUE(QTest::qWaitFor([&] { return ended.count() == 1; }, kPatienceMs));
  ASSERT_EQ(failed.count(), 1);
  EXPECT_EQ(failed[0][0].toString(), QStringLiteral("it broke"));
}

// Cancelling does not wait for the job: even one that takes no notice for a second.
TEST(TaskTimed, CancelAnswersWithin100Ms) {
  Task task;
  std::atomic<bool> has_started = false;
  bool is_shown = false;
  task.start(QStringLiteral("Deaf"), [&](const TaskContext& context) {
    has_started = true;
    sleep_ms(1000);
    context.publish([&] { is_shown = true; });
  });
  while (!has_started) sleep_ms(1);
  const QSignalSpy ended(&task, &Task::ended);
  QElapsedTimer timer;
  timer.start();
  task.cancel();
  EXPECT_LE(timer.elapsed(), 100);
  EXPECT_EQ(ended.count(), 1);
  EXPECT_FALSE(task.is_running());
  // The next waits for the end of the deaf one, and only it is shown.
  bool is_next_shown = false;
  task.start(QStringLiteral("Next"),
             [&](const TaskContext& context) { context.publish([&] { is_next_shown = true; }); });
  ASSERT_TRUE(QTest::qWaitFor([&] { return !task.is_running(); }, kPatienceMs));
  EXPECT_TRUE(is_next_shown);
  EXPECT_FALSE(is_shown);
}

}  // namespace
}  // namespace ring::gui
