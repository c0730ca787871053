// QCustomPlot, whose header uses Qt's keywords; everywhere else they are off (QT_NO_KEYWORDS).
#pragma once

#include <QtGlobal>

#define signals Q_SIGNALS
#define slots Q_SLOTS
#define emit
#define foreach Q_FOREACH
#include <qcustomplot.h>
#undef signals
#undef slots
#undef emit
#undef foreach
