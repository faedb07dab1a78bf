#include "common/spec/scalars.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

using testing::HasSubstr;

TEST(ScalarsTest, IntegersAreDecimal) {
  EXPECT_EQ(*ParseInteger("0"), 0);
  EXPECT_EQ(*ParseInteger("-12"), -12);
  EXPECT_EQ(*ParseInteger("9223372036854775807"), INT64_MAX);
  for (const char* bad : {"", "-", "010", "0x10", "1_000", "1.0", "1e3", " 1", "9223372036854775808", "two"}) {
    const auto value = ParseInteger(bad);
    ASSERT_FALSE(value.ok()) << bad;
    EXPECT_THAT(std::string(value.status().message()), HasSubstr(absl::StrCat("\"", bad, "\"")));
  }
  EXPECT_EQ(*ParseUnsigned("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(ParseUnsigned("-1").ok());
}

TEST(ScalarsTest, NumbersAreFiniteDecimals) {
  EXPECT_EQ(*ParseNumber("6e-4"), 6e-4);
  EXPECT_EQ(*ParseNumber("-1.5E+2"), -150);
  EXPECT_EQ(*ParseNumber(".5"), 0.5);
  EXPECT_EQ(*ParseNumber("0.5"), 0.5);
  for (const char* bad : {"", ".", "e5", "1e", "nan", ".inf", "1e999", "0x1p3", "00.5", "1,5"}) {
    EXPECT_FALSE(ParseNumber(bad).ok()) << bad;
  }
}

TEST(ScalarsTest, SizesHaveUnitsOfTwoKinds) {
  EXPECT_EQ(*ParseSize("40GiB"), int64_t{40} << 30);
  EXPECT_EQ(*ParseSize("1.5 GB"), 1'500'000'000);
  EXPECT_EQ(*ParseSize("512MiB"), int64_t{512} << 20);
  EXPECT_EQ(*ParseSize("12B"), 12);
  EXPECT_EQ(*ParseSize("4096"), 4096);
  for (const char* bad : {"", "GiB", "40Gib", "40 parsecs", "-1GiB", "1e99TiB", "040", "nanGiB"}) {
    EXPECT_FALSE(ParseSize(bad).ok()) << bad;
  }
}

TEST(ScalarsTest, SizeTextReadsBack) {
  EXPECT_EQ(SizeText(int64_t{40} << 30), "40GiB");
  for (int64_t bytes : {int64_t{1}, int64_t{1000}, int64_t{1024}, int64_t{3} << 20, (int64_t{1} << 40) + 1}) {
    EXPECT_EQ(*ParseSize(SizeText(bytes)), bytes);
  }
}

TEST(ScalarsTest, DurationsHaveUnits) {
  EXPECT_EQ(*ParseDuration("90s"), absl::Seconds(90));
  EXPECT_EQ(*ParseDuration("1.5h"), absl::Minutes(90));
  for (const char* bad : {"", "90", "5 years", "-1s"}) EXPECT_FALSE(ParseDuration(bad).ok()) << bad;
}

TEST(ScalarsTest, FlagsAreTrueOrFalse) {
  EXPECT_TRUE(*ParseFlag("true"));
  EXPECT_FALSE(*ParseFlag("false"));
  EXPECT_FALSE(ParseFlag("yes").ok());
}

}  // namespace
}  // namespace muster
