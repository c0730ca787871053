// ParametersDock: everything of the scenario that can be changed, as sliders, boxes and lists.
#pragma once

#include <QDockWidget>
#include <map>
#include <string>
#include <vector>

#include "core/choices.h"
#include "core/scenario.h"

class QCheckBox;
class QComboBox;
class QVBoxLayout;

namespace ring::gui {

class ChoiceBox;
class SliderBox;
class Workspace;

class ParametersDock : public QDockWidget {
  Q_OBJECT

 public:
  explicit ParametersDock(Workspace& workspace, QWidget* parent = nullptr);

  /// The parameter must exist (gui/docks/parameter_table.h).
  SliderBox& number(const std::string& id) const { return *numbers_.at(id); }
  /// "mask", "machine", "strategy" or "partition".
  ChoiceBox& choice(const std::string& id) const { return *choices_.at(id); }
  /// "model", "dtype" or "pass".
  QComboBox& list(const std::string& id) const { return *lists_.at(id); }

 Q_SIGNALS:
  /// The user wants a model or machine file instead of what the lists offer.
  void model_file_wanted();
  void machine_file_wanted();

 private:
  void add_numbers(QVBoxLayout& column, int group);
  QComboBox& add_list(QVBoxLayout& column, const std::string& id, const QString& label,
                      const QString& help);
  ChoiceBox& add_choice(QVBoxLayout& column, const std::string& id, const QString& label,
                        const QString& help, void (*set)(Scenario&, const std::string&));
  void build_problem(QVBoxLayout& column);
  void build_machine(QVBoxLayout& column);
  void build_tuning(QVBoxLayout& column);
  void model_chosen(int index);
  void show_scenario();

  Workspace& workspace_;
  std::map<std::string, SliderBox*> numbers_;
  std::map<std::string, ChoiceBox*> choices_;
  std::map<std::string, QComboBox*> lists_;
  QCheckBox* deterministic_ = nullptr;
  std::vector<ChoiceForm> strategy_forms_;  ///< For `forms_ranks_` ranks.
  int forms_ranks_ = 0;
};

}  // namespace ring::gui
