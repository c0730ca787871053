#include "gui/window/help_sheet.h"

#include <QAction>
#include <QDialogButtonBox>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "gui/window/action_set.h"

namespace ring::gui {

QString help_html(const std::vector<QAction*>& actions) {
  QString window, timeline;
  for (const QAction* action : actions) {
    const QVariant gesture = action->property("gesture");
    const QString keys = keys_of(*action).toHtmlEscaped().replace(QStringLiteral("; "),
                                                                  HelpSheet::tr("</b> or <b>"));
    const QString rest = gesture.isValid() ? gesture.toString() : action->toolTip();
    (gesture.isValid() ? timeline : window) +=
        QStringLiteral("<tr><td><b>%1</b></td><td>%2</td><td>%3</td></tr>")
            .arg(keys, name_of(*action).toHtmlEscaped(), rest.toHtmlEscaped());
  }
  const QString table = QStringLiteral("<h3>%1</h3><table cellpadding=3>%2</table>");
  return table.arg(HelpSheet::tr("In the timeline"), timeline) +
         table.arg(HelpSheet::tr("Everywhere"), window);
}

HelpSheet::HelpSheet(const std::vector<QAction*>& actions, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("Keys and gestures"));
  resize(760, 640);
  auto* text = new QTextBrowser(this);
  text->setHtml(help_html(actions));
  text->setAccessibleName(tr("Keys and gestures"));
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* column = new QVBoxLayout(this);
  column->addWidget(text);
  column->addWidget(buttons);
}

}  // namespace ring::gui
