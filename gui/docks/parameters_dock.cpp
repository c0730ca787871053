#include "gui/docks/parameters_dock.h"

#include <QCheckBox>
#include <QComboBox>
#include <QGroupBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "core/choices.h"
#include "core/error.h"
#include "core/formats/model_library.h"
#include "gui/docks/choice_box.h"
#include "gui/docks/parameter_table.h"
#include "gui/docks/slider_box.h"
#include "gui/docks/wheel_guard.h"
#include "gui/paint/text.h"
#include "gui/session/workspace.h"

namespace ring::gui {

namespace {

QVBoxLayout* add_group(QVBoxLayout& column, ParameterGroup group) {
  auto* box = new QGroupBox(qt(title(group)));
  auto* inner = new QVBoxLayout(box);
  inner->setSpacing(6);
  column.addWidget(box);
  return inner;
}

SliderBoxText text_of(const NumberParameter& parameter) {
  const QString unit = parameter.unit == "x" ? QStringLiteral("×") : qt(parameter.unit);
  return {qt(parameter.label),
          unit,
          qt(parameter.help),
          qt(parameter.zero),
          [&parameter](const QString& text) { return parameter.parse(text.toStdString()); },
          [&parameter](double value) { return QString::fromStdString(parameter.format(value)); },
          parameter.has_slider};
}

std::vector<ChoiceForm> machine_forms() {
  std::vector<ChoiceForm> forms;
  for (const MachineOffer& offer : machine_offers()) {
    const std::string kind = offer.text.empty() ? "this machine" : offer.text;
    forms.push_back(
        {kind, offer.text.empty() ? "" : "options, such as nodes=2", offer.summary, kind});
  }
  return forms;
}

/// In the list this machine has a name; in a scenario it is the empty text.
std::string machine_text(const std::string& listed) {
  return listed == "this machine" ? std::string() : listed;
}

}  // namespace

ParametersDock::ParametersDock(Workspace& workspace, QWidget* parent)
    : QDockWidget(tr("Parameters"), parent), workspace_(workspace) {
  setObjectName(QStringLiteral("parameters"));
  auto* content = new QWidget;
  auto* column = new QVBoxLayout(content);
  column->setContentsMargins(8, 8, 8, 8);
  build_problem(*add_group(*column, ParameterGroup::kProblem));
  build_machine(*add_group(*column, ParameterGroup::kMachine));
  build_tuning(*add_group(*column, ParameterGroup::kTuning));
  add_numbers(*add_group(*column, ParameterGroup::kWhatIf),
              static_cast<int>(ParameterGroup::kWhatIf));
  column->addStretch(1);
  auto* area = new QScrollArea;
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  area->setWidget(content);
  area->setMinimumWidth(content->minimumSizeHint().width() + 24);
  setWidget(area);
  connect(&workspace_, &Workspace::scenario_changed, this, &ParametersDock::show_scenario);
  show_scenario();
}

void ParametersDock::add_numbers(QVBoxLayout& column, int group) {
  for (const NumberParameter& parameter : number_parameters()) {
    if (static_cast<int>(parameter.group) != group) continue;
    auto* box = new SliderBox(text_of(parameter));
    box->setObjectName(qt(parameter.id));
    column.addWidget(box);
    numbers_[std::string(parameter.id)] = box;
    connect(box, &SliderBox::drag_began, this, [this] { workspace_.begin_drag(); });
    connect(box, &SliderBox::drag_ended, this, [this] { workspace_.end_drag(); });
    connect(box, &SliderBox::value_edited, this, [this, &parameter](double value) {
      try {
        workspace_.edit([&](Scenario& scenario) { parameter.set(scenario, value); },
                        qt(parameter.label).toLower());
      } catch (const Error&) {
        show_scenario();  // The box shows the last value that was possible.
      }
    });
  }
}

QComboBox& ParametersDock::add_list(QVBoxLayout& column, const std::string& id,
                                    const QString& label, const QString& help) {
  auto* row = new QHBoxLayout;
  auto* list = new QComboBox;
  auto* name = new QLabel(label);
  name->setBuddy(list);
  list->setAccessibleName(label);
  list->setObjectName(QString::fromStdString(id));
  list->setToolTip(help);
  guard_wheel(*list);
  row->addWidget(name);
  row->addStretch(1);
  row->addWidget(list);
  column.addLayout(row);
  lists_[id] = list;
  return *list;
}

ChoiceBox& ParametersDock::add_choice(QVBoxLayout& column, const std::string& id,
                                      const QString& label, const QString& help,
                                      void (*set)(Scenario&, const std::string&)) {
  auto* box = new ChoiceBox(label, help, id == "machine");
  box->setObjectName(QString::fromStdString(id));
  column.addWidget(box);
  choices_[id] = box;
  connect(box, &ChoiceBox::text_chosen, this, [this, set, label, box](const QString& text) {
    try {
      workspace_.edit([&](Scenario& scenario) { set(scenario, text.toStdString()); },
                      label.toLower());
    } catch (const Error& error) {
      show_scenario();
      box->parameter()->setToolTip(QString::fromStdString(error.what()));
    }
  });
  return *box;
}

void ParametersDock::build_problem(QVBoxLayout& column) {
  QComboBox& models =
      add_list(column, "model", tr("Model"), tr("Whose heads and head dims are taken"));
  models.addItem(tr("custom heads"));
  for (const ShippedModel& model : shipped_models()) {
    models.addItem(qt(model.name));
    models.setItemData(models.count() - 1, qt(model.summary), Qt::ToolTipRole);
  }
  models.addItem(tr("from a config.json …"));
  connect(&models, &QComboBox::activated, this, &ParametersDock::model_chosen);

  add_numbers(column, static_cast<int>(ParameterGroup::kProblem));
  add_choice(column, "mask", tr("Mask"), tr("Which keys a query sees"),
             [](Scenario& scenario, const std::string& text) {
               scenario.problem.mask = Mask::parse(text, scenario.problem.seq_len());
             });
  QComboBox& dtypes = add_list(column, "dtype", tr("Data type"), tr("Of Q, K, V and the output"));
  for (const DType dtype : all_dtypes()) dtypes.addItem(qt(name(dtype)));
  connect(&dtypes, &QComboBox::activated, this, [this, &dtypes](int index) {
    const DType dtype = parse_dtype(dtypes.itemText(index).toStdString());
    workspace_.edit([&](Scenario& s) { s.problem.dtype = dtype; }, tr("data type"));
  });
  QComboBox& passes = add_list(column, "pass", tr("Pass"), tr("Forward, or gradients too"));
  for (const Pass pass : all_passes()) passes.addItem(qt(name(pass)));
  connect(&passes, &QComboBox::activated, this, [this, &passes](int index) {
    const Pass pass = parse_pass(passes.itemText(index).toStdString());
    workspace_.edit([&](Scenario& s) { s.problem.pass = pass; }, tr("pass"));
  });
}

void ParametersDock::build_machine(QVBoxLayout& column) {
  add_choice(
      column, "machine", tr("Profile"),
      tr("This machine, a preset with its topology, or a profile that was opened"),
      [](Scenario& scenario, const std::string& text) { scenario.machine = machine_text(text); });
  auto* open = new QPushButton(tr("Open a profile …"));
  open->setToolTip(tr("A machine profile that ringscope calibrate wrote, here or elsewhere"));
  column.addWidget(open, 0, Qt::AlignRight);
  connect(open, &QPushButton::clicked, this, &ParametersDock::machine_file_wanted);
}

void ParametersDock::build_tuning(QVBoxLayout& column) {
  add_choice(column, "strategy", tr("Strategy"), tr("How the ranks cooperate"),
             [](Scenario& scenario, const std::string& text) { scenario.tuning.strategy = text; });
  add_choice(column, "partition", tr("Partition"), tr("Which tokens a rank holds"),
             [](Scenario& scenario, const std::string& text) { scenario.tuning.partition = text; });
  add_numbers(column, static_cast<int>(ParameterGroup::kTuning));
  deterministic_ = new QCheckBox(tr("Merge in global order (deterministic)"));
  column.addWidget(deterministic_);
  connect(deterministic_, &QCheckBox::toggled, this, [this](bool is_on) {
    workspace_.edit([&](Scenario& s) { s.tuning.is_deterministic = is_on; }, tr("deterministic"));
  });
}

void ParametersDock::model_chosen(int index) {
  const QComboBox& models = *lists_.at("model");
  if (index == models.count() - 1) {
    show_scenario();
    Q_EMIT model_file_wanted();
    return;
  }
  if (index <= 0 || index > static_cast<int>(shipped_models().size())) return;
  const std::string name(shipped_models()[static_cast<size_t>(index - 1)].name);
  workspace_.edit(
      [&](Scenario& scenario) {
        const ModelShape model = shipped_model(name);
        Problem problem =
            problem_of(dominant_group(model).shape, model.dtype, scenario.problem.seq_len());
        problem.batch = scenario.problem.batch;
        problem.pass = scenario.problem.pass;
        scenario.problem = problem;
        scenario.model = name;
      },
      tr("model"));
}

void ParametersDock::show_scenario() {
  const Scenario& scenario = workspace_.scenario();
  for (const NumberParameter& parameter : number_parameters()) {
    SliderBox& box = *numbers_.at(std::string(parameter.id));
    box.set_stops(parameter.stops(scenario));
    box.set_value(parameter.get(scenario));
  }
  const auto show = [this](const char* id, const std::vector<ChoiceForm>& forms,
                           const std::string& text) {
    choices_.at(id)->set_forms(forms);
    choices_.at(id)->set_text(QString::fromStdString(text));
  };
  const int64_t seq_len = scenario.problem.seq_len();
  show("mask", mask_forms(seq_len), scenario.problem.mask.text());
  show("partition", partition_forms(seq_len, scenario.tuning.ranks), scenario.tuning.partition);
  if (forms_ranks_ != scenario.tuning.ranks) {  // Finding usable parameters takes a moment.
    strategy_forms_ = strategy_forms(scenario.tuning.ranks);
    forms_ranks_ = scenario.tuning.ranks;
  }
  show("strategy", strategy_forms_, scenario.tuning.strategy);
  show("machine", machine_forms(), scenario.machine.empty() ? "this machine" : scenario.machine);
  lists_.at("dtype")->setCurrentText(qt(name(scenario.problem.dtype)));
  lists_.at("pass")->setCurrentText(qt(name(scenario.problem.pass)));
  const int model = lists_.at("model")->findText(QString::fromStdString(scenario.model));
  lists_.at("model")->setCurrentIndex(std::max(0, model));
  lists_.at("model")->setItemText(0, scenario.model.empty() || model >= 0
                                         ? tr("custom heads")
                                         : QString::fromStdString(scenario.model).section('/', -1));
  const QSignalBlocker quiet(deterministic_);
  deterministic_->setChecked(scenario.tuning.is_deterministic);
}

}  // namespace ring::gui
