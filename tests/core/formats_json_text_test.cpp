#include "core/formats/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/formats/json_object.h"
#include "tests/core/formats_testing.h"

namespace ring {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

TEST(JsonText, SyntaxErrorsHaveLineAndColumn) {
  EXPECT_THAT(error_of([] { parse_json("{\n  \"a\": nan\n}", "f.json"); }),
              HasSubstr("f.json:2:9: not valid JSON"));
  EXPECT_THAT(error_of([] { parse_json("{\"a\": 1,\n \"b\": [1, 2", "f.json"); }),
              AllOf(HasSubstr("f.json:2:"), HasSubstr("ends early")));
  EXPECT_THAT(error_of([] { parse_json("", "f.json"); }), HasSubstr("f.json:1:1"));
  EXPECT_THAT(error_of([] { parse_json("{} x", "f.json"); }), HasSubstr("f.json:1:4"));
  EXPECT_THAT(error_of([] { parse_json("[1e999]", "f.json"); }), HasSubstr("f.json:1:"));
}

TEST(JsonText, RefusesRepeatedKeysAndDeepNesting) {
  EXPECT_THAT(error_of([] { parse_json(R"({"a": {"b": 1, "b": 2}})", "f.json"); }),
              HasSubstr("the key \"b\" appears twice"));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_THAT(error_of([&] { parse_json(deep, "f.json"); }), HasSubstr("nested deeper than 200"));
  const std::string fine = std::string(200, '[') + std::string(200, ']');
  EXPECT_NO_THROW(parse_json(fine, "f.json"));
}

TEST(JsonText, WritesWhatFitsOnOneLine) {
  const ordered_json value = {{"name", "x"}, {"list", {1, 2, 3}}};
  EXPECT_EQ(json_text(value, "x"), "{\"name\": \"x\", \"list\": [1, 2, 3]}\n");
  ordered_json wide = ordered_json::object();
  wide["first"] = std::vector<int>(40, 7);
  wide["second"] = {{"deep", 1.5}};
  const std::string text = json_text(wide, "x");
  EXPECT_THAT(text, HasSubstr("\n  \"second\": {\"deep\": 1.5}\n}"));
  EXPECT_THAT(text, HasSubstr("\n  \"first\": [\n    7,\n    7,"));
}

TEST(JsonText, RefusesNumbersThatAreNotFinite) {
  EXPECT_THAT(error_of([] {
                json_text({{"a", {1.0, NAN}}}, "machine m");
              }),
              HasSubstr("machine m holds a number that is not finite"));
  EXPECT_THAT(error_of([] { json_text({{"a", INFINITY}}, "m"); }), HasSubstr("not finite"));
}

RC_GTEST_PROP(JsonText, NumbersReadBackExactly, (int64_t whole, uint64_t bits)) {
  double number = 0;
  std::memcpy(&number, &bits, sizeof number);
  RC_PRE(std::isfinite(number));
  const ordered_json value = {{"whole", whole}, {"number", number}};
  const json read = parse_json(json_text(value, "x"), "x");
  RC_ASSERT(read.at("whole").get<int64_t>() == whole);
  RC_ASSERT(read.at("number").get<double>() == number);
}

RC_GTEST_PROP(JsonText, TextIsKept, (const std::map<std::string, std::string>& texts)) {
  try {
    const std::string once = json_text(ordered_json(texts), "x");
    const json read = parse_json(once, "x");
    RC_ASSERT(read.size() == texts.size());
    RC_ASSERT(json_text(ordered_json(read), "x") == once);
  } catch (const Error& error) {
    RC_ASSERT(std::string(error.what()).find("not UTF-8") != std::string::npos);
  }
}

TEST(JsonText, Utf8IsKeptAndOtherBytesAreReplaced) {
  const json read = parse_json(json_text({{"grüße", "µs"}, {"b", "a\xff"}}, "x"), "x");
  EXPECT_EQ(read.at("grüße"), "µs");
  EXPECT_EQ(read.at("b"), "a\xef\xbf\xbd");
  EXPECT_THAT(error_of([] { json_text({{"\xff", 1}}, "x"); }), HasSubstr("not UTF-8"));
}

RC_GTEST_PROP(JsonText, NoPrefixAndNoFlippedByteCrashes, (const std::string& noise, size_t at)) {
  std::string text = R"({"a": [1, -2.5e3, "x\u00e9", true, null, {"b": {}}]})";
  text.insert(at % text.size(), noise);
  try {
    parse_json(text, "f");
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::kUsage);
  }
}

TEST(JsonObject, NamesPlaceKeyAndNearestSpelling) {
  const json value = parse_json(R"({"depth": 2, "bloks": 3, "x": 18446744073709551615})", "f.json");
  const JsonPlace place{"f.json", "/tuning"};
  EXPECT_EQ(error_of([&] {
              JsonObject(value, place, {"depth", "blocks", "x"});
            }),
            "f.json: /tuning: unknown key \"bloks\" | Did you mean \"blocks\"?");
  const JsonObject object(value, place, {"depth", "bloks", "x", "lanes"});
  EXPECT_EQ(object.integer("depth"), 2);
  EXPECT_THAT(error_of([&] { object.integer("lanes"); }),
              HasSubstr("f.json: /tuning: the key \"lanes\" is missing"));
  EXPECT_THAT(error_of([&] { object.integer("x"); }), HasSubstr("f.json: /tuning/x: 1844674407"));
  EXPECT_THAT(error_of([&] { object.string("depth"); }),
              HasSubstr("f.json: /tuning/depth: expected a string, found a whole number"));
  EXPECT_THAT(error_of([&] { object.integer("depth", 3, 9); }),
              HasSubstr("2 is out of range, allowed is 3 to 9"));
}

TEST(JsonObject, WholeNumbersAreNotTakenFromFractions) {
  const json value = parse_json(R"({"a": 1.0, "b": 9223372036854775808})", "f");
  const JsonObject object(value, {"f", ""}, {"a", "b"});
  EXPECT_THAT(error_of([&] { object.integer("a"); }), HasSubstr("expected a whole number"));
  EXPECT_THAT(error_of([&] { object.integer("b"); }), HasSubstr("out of range"));
}

TEST(JsonPlace, EscapesAsJsonPointersDo) {
  EXPECT_EQ((JsonPlace{"f", ""}.at("a/b~c").at(3).text()), "f: /a~1b~0c/3");
}

}  // namespace
}  // namespace ring
