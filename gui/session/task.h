// Task: one long job off the GUI thread, with progress and a cancel that answers at once.
#pragma once

#include <QObject>
#include <QString>
#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

namespace ring::gui {

/// What a job gets to run. `is_cancelled` and `stop` say the same in the two ways that libraries
/// ask for.
struct TaskContext {
  const std::atomic<bool>& is_cancelled;
  std::stop_token stop;
  /// `done` in [0, 1]. From any thread.
  std::function<void(double done, const std::string& what)> progress;
  /// Called on the GUI thread, unless the job was cancelled before.
  std::function<void(std::function<void()>)> publish;
};

/// A job that was cancelled may go on for a while until it notices (one op of a real run cannot be
/// interrupted), but nothing of it is shown any more. The next job waits for its end first.
class Task : public QObject {
  Q_OBJECT

 public:
  using Job = std::function<void(const TaskContext&)>;

  explicit Task(QObject* parent = nullptr);
  /// Cancels and waits for the end.
  ~Task() override;

  /// Cancels what runs, then starts. `label` is what the status bar says: "Measuring".
  void start(const QString& label, Job job);
  void cancel();
  bool is_running() const { return state_ != nullptr; }
  const QString& label() const { return label_; }

 Q_SIGNALS:
  void started(const QString& label);
  void progressed(double done, const QString& what);
  /// After `started`, always one of: done, cancelled or failed.
  void ended(bool is_cancelled);
  void failed(const QString& message, const QString& hint);

 private:
  struct State {
    std::atomic<bool> is_cancelled = false;
    std::stop_source stop;
  };

  void run(const std::shared_ptr<State>& state, const Job& job);
  void post(const std::shared_ptr<State>& state, std::function<void()> call);

  QString label_;
  std::shared_ptr<State> state_;  ///< Of the job that runs; null when none does.
  std::thread thread_;            ///< Of the job started last, cancelled or not.
};

}  // namespace ring::gui
