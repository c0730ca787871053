#include "core/units.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "core/error.h"

namespace ring {
namespace {

TEST(Units, ReadsCountsBytesTimesAndRates) {
  EXPECT_EQ(parse_count("64Ki", "seq"), 65536);
  EXPECT_EQ(parse_count("1M", "seq"), 1'000'000);
  EXPECT_EQ(parse_count("1.5Mi", "seq"), 1'572'864);
  EXPECT_EQ(parse_bytes("64Ki", "size"), 65536);
  EXPECT_EQ(parse_bytes("2 GB", "size"), 2'000'000'000);
  EXPECT_EQ(parse_time("3us", "latency"), 3'000'000);
  EXPECT_EQ(parse_time("1.5 ms", "latency"), 1'500'000'000);
  EXPECT_EQ(parse_time("2min", "latency"), 120'000'000'000'000);
  EXPECT_DOUBLE_EQ(parse_bandwidth("450GB/s", "link"), 450e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("200Gb/s", "link"), 25e9);
  EXPECT_DOUBLE_EQ(parse_flop_rate("312TFLOP/s", "peak"), 312e12);
  EXPECT_DOUBLE_EQ(parse_fraction("10%", "jitter"), 0.1);
}

TEST(Units, RefusesWhatIsNoQuantity) {
  for (const char* text : {"", "x", "4 096", "1.5", "nan", "inf", "1e30", "4096B", "-", "9e18Ki"}) {
    EXPECT_THROW(parse_count(text, "seq"), Error) << text;
  }
  EXPECT_THROW(parse_bytes("4096", "size"), Error);
  EXPECT_THROW(parse_time("3", "latency"), Error);
  EXPECT_THROW(parse_time("3 furlongs", "latency"), Error);
  EXPECT_THROW(parse_bandwidth("450", "link"), Error);
  EXPECT_THROW(parse_bandwidth("450GB", "link"), Error);
  EXPECT_THROW(parse_count("9223372036854775807Ki", "seq"), Error);
}

TEST(Units, NamesTheKeyAndTheAllowedUnits) {
  try {
    parse_bandwidth("450", "link.bandwidth");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("link.bandwidth"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("unit is missing"), std::string::npos);
    EXPECT_NE(error.hint().find("GB/s"), std::string::npos);
  }
}

TEST(Units, PrintsWithTheUnitThatFits) {
  EXPECT_EQ(format_time(0), "0 ps");
  EXPECT_EQ(format_time(1'250'000'000), "1.25 ms");
  EXPECT_EQ(format_time(999'999'999'999), "1.00 s");
  EXPECT_EQ(format_bytes(33'554'432), "32.0 MiB");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bandwidth(25e9), "25.0 GB/s");
  EXPECT_EQ(format_count(131072), "128Ki");
  EXPECT_EQ(format_count(1000), "1000");
}

RC_GTEST_PROP(Units, ExactTextsReadBack, (int64_t value)) {
  const int64_t bounded = std::abs(value % (int64_t{1} << 52));
  RC_ASSERT(parse_time(exact_time(bounded), "t") == bounded);
  RC_ASSERT(parse_bytes(exact_bytes(bounded), "b") == bounded);
  RC_ASSERT(parse_count(format_count(bounded), "c") == bounded);
  const double rate = static_cast<double>(bounded) * 1.0000001;
  RC_ASSERT(parse_bandwidth(exact_bandwidth(rate), "r") == rate);
}

TEST(Units, ProductsThatLeave64BitsAreRefused) {
  EXPECT_EQ(checked_multiply(int64_t{1} << 31, int64_t{1} << 31, "x"), int64_t{1} << 62);
  EXPECT_THROW(checked_multiply(int64_t{1} << 32, int64_t{1} << 31, "x"), Error);
}

}  // namespace
}  // namespace ring
