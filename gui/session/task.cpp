#include "gui/session/task.h"

#include "core/error.h"

namespace ring::gui {

Task::Task(QObject* parent) : QObject(parent) {}

Task::~Task() {
  cancel();
  if (thread_.joinable()) thread_.join();
}

void Task::start(const QString& label, Job job) {
  cancel();
  label_ = label;
  state_ = std::make_shared<State>();
  std::thread before = std::move(thread_);
  thread_ = std::thread(
      [this, state = state_, job = std::move(job), before = std::move(before)]() mutable {
        if (before.joinable()) before.join();
        run(state, job);
      });
  Q_EMIT started(label_);
}

void Task::cancel() {
  if (state_ == nullptr) return;
  state_->is_cancelled = true;
  state_->stop.request_stop();
  state_.reset();
  Q_EMIT ended(true);
}

void Task::post(const std::shared_ptr<State>& state, std::function<void()> call) {
  QMetaObject::invokeMethod(
      this,
      [this, state, call = std::move(call)] {
        if (state_ == state) call();
      },
      Qt::QueuedConnection);
}

void Task::run(const std::shared_ptr<State>& state, const Job& job) {
  if (state->is_cancelled) return;
  const TaskContext context{
      state->is_cancelled, state->stop.get_token(),
      [this, state](double done, const std::string& what) {
        post(state, [this, done, what] { Q_EMIT progressed(done, QString::fromStdString(what)); });
      },
      [this, state](std::function<void()> call) { post(state, std::move(call)); }};
  QString message, hint;
  try {
    job(context);
  } catch (const Error& error) {
    message = QString::fromStdString(error.what());
    hint = QString::fromStdString(error.hint());
  }
  post(state, [this, message, hint] {
    state_.reset();
    if (!message.isEmpty()) Q_EMIT failed(message, hint);
    Q_EMIT ended(false);
  });
}

}  // namespace ring::gui
