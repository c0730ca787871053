// MachineRunner: runs the scenario for real on this machine, and calibrates it, in the background.
#pragma once

#include <QObject>

#include "gui/session/task.h"

namespace ring::gui {

class Workspace;

class MachineRunner : public QObject {
  Q_OBJECT

 public:
  explicit MachineRunner(Workspace& workspace, QObject* parent = nullptr);

  /// The scenario as it is now, on the cores of this machine. Its machine becomes this machine, so
  /// that prediction and measurement are of the same; what-ifs are of no machine and are cleared.
  void measure();
  void calibrate();
  void cancel() { task_.cancel(); }
  Task& task() { return task_; }
  void set_repeats(int repeats) { repeats_ = repeats; }
  void set_calibration_budget_s(double budget_s) { calibration_budget_s_ = budget_s; }

 Q_SIGNALS:
  /// "16 rows agree with the oracle ...".
  void measured(const QString& verification, bool is_right);
  void calibrated(const QString& path);

 private:
  Workspace& workspace_;
  int repeats_ = 5;
  double calibration_budget_s_ = 45;
  Task task_;
};

}  // namespace ring::gui
