// LatestJob: work off the GUI thread of which only the newest results are shown.
#pragma once

#include <QObject>
#include <QTimer>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace ring::gui {

/// What a piece of work gets to run.
struct JobContext {
  std::stop_token stop;
  /// Hands something to the GUI thread, where it is called, unless something newer was shown
  /// before.
  std::function<void(std::function<void()>)> publish;
};

/// One thread, one piece of work waiting at most: a newer one takes its place. Work that is
/// overtaken may finish while it is young, so that a drag shows something on its way; then it is
/// stopped. What an older piece publishes is never shown after anything of a newer one.
class LatestJob : public QObject {
  Q_OBJECT

 public:
  using Work = std::function<void(const JobContext&)>;

  explicit LatestJob(QObject* parent = nullptr);
  /// Stops the work and waits for it.
  ~LatestJob() override;

  void start(Work work);
  /// Drops what waits, stops what runs, and shows nothing more of either.
  void cancel();
  bool is_busy() const { return is_busy_; }

 Q_SIGNALS:
  void busy_changed(bool is_busy);

 private:
  using Clock = std::chrono::steady_clock;
  struct Piece {
    uint64_t serial = 0;
    Work work;
    std::stop_source stop;
  };

  void run(const std::stop_token& quit);
  void show(uint64_t serial, const std::function<void()>& deliver);
  void finished(uint64_t serial);
  void stop_overtaken();

  // On the GUI thread.
  uint64_t newest_ = 0;     ///< Serial of the piece started last.
  uint64_t shown_ = 0;      ///< Serial of the newest that published.
  uint64_t cancelled_ = 0;  ///< Nothing up to this serial is shown.
  bool is_busy_ = false;
  QTimer patience_;

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::optional<Piece> waiting_;
  std::optional<std::stop_source> running_;
  Clock::time_point running_since_;
  std::jthread thread_;
};

}  // namespace ring::gui
