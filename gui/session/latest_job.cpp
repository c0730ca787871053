#include "gui/session/latest_job.h"

#include <algorithm>

#include "core/error.h"

namespace ring::gui {

namespace {

/// How long work goes on after newer work has come.
constexpr std::chrono::milliseconds kPatience(250);

}  // namespace

LatestJob::LatestJob(QObject* parent) : QObject(parent) {
  patience_.setSingleShot(true);
  connect(&patience_, &QTimer::timeout, this, &LatestJob::stop_overtaken);
  thread_ = std::jthread([this](const std::stop_token& quit) { run(quit); });
}

LatestJob::~LatestJob() {
  cancel();
  thread_.request_stop();
  thread_.join();
}

void LatestJob::start(Work work) {
  bool is_running = false;
  {
    const std::lock_guard lock(mutex_);
    waiting_ = Piece{++newest_, std::move(work), {}};
    is_running = running_.has_value();
  }
  wake_.notify_one();
  if (is_running && !patience_.isActive()) patience_.start(kPatience);
  if (!is_busy_) Q_EMIT busy_changed(is_busy_ = true);
}

void LatestJob::cancel() {
  {
    const std::lock_guard lock(mutex_);
    waiting_.reset();
    if (running_) running_->request_stop();
  }
  patience_.stop();
  cancelled_ = newest_;
  if (is_busy_) Q_EMIT busy_changed(is_busy_ = false);
}

void LatestJob::stop_overtaken() {
  const std::lock_guard lock(mutex_);
  if (!waiting_ || !running_) return;
  if (Clock::now() - running_since_ >= kPatience) {
    running_->request_stop();
  } else {
    patience_.start(kPatience);
  }
}

void LatestJob::show(uint64_t serial, const std::function<void()>& deliver) {
  if (serial < shown_ || serial <= cancelled_) return;
  shown_ = serial;
  deliver();
}

void LatestJob::finished(uint64_t serial) {
  if (serial == newest_ && is_busy_) Q_EMIT busy_changed(is_busy_ = false);
}

void LatestJob::run(const std::stop_token& quit) {
  for (;;) {
    Piece piece;
    {
      std::unique_lock lock(mutex_);
      if (!wake_.wait(lock, quit, [this] { return waiting_.has_value(); })) return;
      piece = std::move(*waiting_);
      waiting_.reset();
      running_ = piece.stop;
      running_since_ = Clock::now();
    }
    const uint64_t serial = piece.serial;
    const JobContext context{piece.stop.get_token(), [this, serial](std::function<void()> deliver) {
                               QMetaObject::invokeMethod(
                                   this, [this, serial, deliver] { show(serial, deliver); },
                                   Qt::QueuedConnection);
                             }};
    try {
      piece.work(context);
    } catch (const Error& error) {
      RING_ASSERT(error.kind() == ErrorKind::kInterrupted);
    }
    {
      const std::lock_guard lock(mutex_);
      running_.reset();
    }
    QMetaObject::invokeMethod(
        this, [this, serial] { finished(serial); }, Qt::QueuedConnection);
  }
}

}  // namespace ring::gui
