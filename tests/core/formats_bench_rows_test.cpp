#include "core/formats/bench_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace ring {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

std::vector<BenchRow> some_rows() {
  return {row_at_most("met", 1.5, "ms", 2),
          row_at_least("missed", 3, "ratio", 4),
          {"told", 7, "s", {}, true}};
}

TEST(BenchRows, ReadBackEqual) {
  const std::vector<BenchRow> rows = some_rows();
  const std::vector<BenchRow> again = parse_bench_rows(bench_json("x", rows));
  ASSERT_EQ(again.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(again[i].name, rows[i].name);
    EXPECT_EQ(again[i].value, rows[i].value);
    EXPECT_EQ(again[i].unit, rows[i].unit);
    EXPECT_EQ(again[i].target, rows[i].target);
    EXPECT_EQ(again[i].ok, rows[i].ok);
  }
  EXPECT_THROW(parse_bench_rows("{\"rows\": [{}]}"), Error);
  EXPECT_THROW(parse_bench_rows("no"), Error);
}

TEST(BenchRows, MissedTargetsAreSaidAndFail) {
  const std::vector<BenchRow> rows = some_rows();
  EXPECT_TRUE(rows[0].ok);
  EXPECT_FALSE(rows[1].ok);
  EXPECT_THAT(bench_line(rows[0]), EndsWith("ok\n"));
  EXPECT_THAT(bench_line(rows[1]), EndsWith("MISSED\n"));
  EXPECT_THAT(bench_line(rows[1]), HasSubstr(">= 4"));
  EXPECT_EQ(finish_bench({}, "x", rows), 1);
  EXPECT_EQ(finish_bench({}, "x", {rows[0], rows[2]}), 0);
}

TEST(BenchRows, OptionsThatNobodyKnowsAreRefused) {
  std::string program = "bench", quick = "--quick", json = "--json", file = "f.json";
  std::vector<char*> all = {program.data(), quick.data(), json.data(), file.data()};
  const BenchOptions options = bench_options(4, all.data(), "bench");
  EXPECT_TRUE(options.is_quick);
  EXPECT_EQ(options.json_path, "f.json");
  EXPECT_THROW(bench_options(3, all.data(), "bench"), Error);  // --json without a file
}

}  // namespace
}  // namespace ring
