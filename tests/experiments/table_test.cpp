#include "experiments/table.h"

#include <gtest/gtest.h>

#include "experiments/progress.h"

namespace ring {
namespace {

TEST(Table, AlignsColumnsAndTrimsLines) {
  Table table;
  table.column("name", Align::kLeft).column("time").column("", Align::kLeft);
  table.row({"a", "1.25 ms", ""});
  table.row({"longer", "9 us", "x"});
  EXPECT_EQ(table.text(Style{}),
            "  name       time\n"
            "  a       1.25 ms\n"
            "  longer     9 us  x\n");
}

TEST(Table, WithoutHeadingsHasNoHeadingLine) {
  Table table(0);
  table.column("", Align::kLeft).column("", Align::kLeft);
  table.row({"key", "value"});
  EXPECT_EQ(table.text(Style{}), "key  value\n");
}

TEST(Table, ColourAndWideCharactersDoNotMoveColumns) {
  Table table(0);
  table.column("a").column("b");
  table.row({"±1", {"good", Tone::kGood}});
  table.row({"333", "2"});
  EXPECT_EQ(table.text(Style{true, 0}),
            "  \x1b[2ma\x1b[0m     \x1b[2mb\x1b[0m\n"
            " ±1  \x1b[32mgood\x1b[0m\n"
            "333     2\n");
}

TEST(Table, ContinuesBelowWhereTheTerminalEnds) {
  Table table;
  table.column("name", Align::kLeft).column("one").column("two").column("three");
  table.row({"a", "1", "2", "3"});
  EXPECT_EQ(table.text(Style{false, 16}),
            "  name  one  two\n"
            "  a       1    2\n"
            "\n"
            "  name  three\n"
            "  a         3\n");
  EXPECT_EQ(table.text(Style{false, 25}), table.text(Style{}));
}

TEST(Table, ATextBesideItsLabelIsNotCutOff) {
  Table table;
  table.column("", Align::kLeft).column("", Align::kLeft);
  table.row({"label", "a text that is longer than the line"});
  EXPECT_EQ(table.text(Style{false, 20}), "  label  a text that is longer than the line\n");
}

TEST(Style, WithoutColourChangesNothing) {
  EXPECT_EQ(Style{}.paint(Tone::kBad, "text"), "text");
  EXPECT_EQ((Style{true, 0}).paint(Tone::kBad, "text"), "\x1b[31mtext\x1b[0m");
}

TEST(Progress, SaysShareTimeLeftAndWork) {
  EXPECT_EQ(progress_line("calibrate", 0.5, 10, "copy", 100),
            "calibrate  [##########----------]  50 %  10 s left  copy");
  EXPECT_EQ(progress_line("calibrate", 0.1, 30, "copy", 100),
            "calibrate  [##------------------]  10 %  4 min left  copy");
}

TEST(Progress, DoesNotGuessFromTheFirstMoment) {
  EXPECT_EQ(progress_line("demo", 0.01, 0.2, "copy", 100),
            "demo  [--------------------]   1 %  copy");
}

TEST(Progress, FitsIntoTheTerminal) {
  EXPECT_EQ(display_width(progress_line("calibrate", 0.5, 10, "a long text", 40)), 40u);
}

}  // namespace
}  // namespace ring
