// CSV files: quoting, line numbers, and what is refused.
#include "core/formats/csv_table.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/core/formats_testing.h"

namespace ring {
namespace {

TEST(CsvTable, ReadsQuotesBlanksAndLineEnds) {
  const CsvTable table = CsvTable::parse(
      "\xEF\xBB\xBF"
      "a,b , c\r\n1, two words ,\"x, \"\"y\"\"\nz\"\r\n\n3,,5\n",
      "t.csv");
  ASSERT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.at(0, "b"), "two words");
  EXPECT_EQ(table.at(0, "c"), "x, \"y\"\nz");
  EXPECT_EQ(table.at(1, "b"), "");
  EXPECT_EQ(table.at(1, "no such column"), "");
  EXPECT_EQ(table.line(0), 2);
  EXPECT_EQ(table.line(1), 5);
}

TEST(CsvTable, RefusesWithFileAndLine) {
  const auto refusal = [](const char* text) {
    return error_of([&] { CsvTable::parse(text, "t.csv"); });
  };
  EXPECT_EQ(refusal(""), "t.csv: an empty file has no heading line | ");
  EXPECT_EQ(refusal("a,a\n"), "t.csv:1: two columns are called \"a\" | ");
  EXPECT_EQ(refusal("a,b\n1,2\n3\n"), "t.csv:3: 1 fields, but the heading has 2 | ");
  EXPECT_EQ(refusal("a,b\n1,\"2\n3\n"), "t.csv:2: a quoted field is never closed | ");
  EXPECT_EQ(refusal("a,b\n\"1\"2,3\n"), "t.csv:2: text after a quoted field | ");
  EXPECT_EQ(error_of([] {
              CsvTable::parse("a,b\n", "t.csv").require({"a", "c", "d"});
            }),
            "t.csv: missing columns: c, d | ");
}

RC_GTEST_PROP(CsvTable, WhatIsQuotedComesBack, (const std::vector<std::string>& fields)) {
  std::string heading = "first", row = "0";
  for (size_t i = 0; i < fields.size(); ++i) {
    heading += ",c" + std::to_string(i);
    std::string quoted;
    for (const char c : fields[i]) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    row += ",\"" + quoted + "\"";
  }
  const CsvTable table = CsvTable::parse(heading + "\n" + row + "\n", "t.csv");
  RC_ASSERT(table.rows() == 1U);
  for (size_t i = 0; i < fields.size(); ++i) {
    RC_ASSERT(table.at(0, "c" + std::to_string(i)) == fields[i]);
  }
}

TEST(CsvCell, IsReadBackWhateverItHolds) {
  const std::vector<std::string> cells{"plain", "a,b", "say \"so\"", "two\nlines", "\"", ",", ""};
  std::string text = "first,second\n";
  for (const std::string& cell : cells) text += csv_cell(cell) + ",x\n";
  const CsvTable table = CsvTable::parse(text, "cells.csv");
  ASSERT_EQ(table.rows(), cells.size());
  for (size_t row = 0; row < cells.size(); ++row) EXPECT_EQ(table.at(row, "first"), cells[row]);
}

}  // namespace
}  // namespace ring
