#include "worker/kernels/formulas.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace muster::kernels {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN();
const float kInfinity = std::numeric_limits<float>::infinity();

TEST(Bf16Test, ComesBackFromF32Unchanged) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const BF16 value{static_cast<uint16_t>(bits)};
    const float wide = ToFloat(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(ToFloat(FromFloat(wide, BF16{}))));
    } else {
      ASSERT_EQ(FromFloat(wide, BF16{}).bits, bits);
    }
  }
}

TEST(Bf16Test, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(ToFloat(FromFloat(1.0f + 0x1p-8f, BF16{})), 1.0f);                // a tie, down to even
  EXPECT_EQ(ToFloat(FromFloat(1.0f + 3 * 0x1p-8f, BF16{})), 1.0f + 0x1p-6f);  // a tie, up to even
  EXPECT_EQ(ToFloat(FromFloat(1.0f + 0x1.01p-8f, BF16{})), 1.0f + 0x1p-7f);   // just above a tie
  EXPECT_EQ(ToFloat(FromFloat(-1.0f - 0x1.01p-8f, BF16{})), -1.0f - 0x1p-7f);
  EXPECT_EQ(ToFloat(FromFloat(std::numeric_limits<float>::max(), BF16{})), kInfinity);
}

TEST(Bf16Test, KeepsInfinityAndNan) {
  EXPECT_EQ(ToFloat(FromFloat(-kInfinity, BF16{})), -kInfinity);
  EXPECT_TRUE(std::isnan(ToFloat(FromFloat(kNan, BF16{}))));
  // A NaN whose fraction is all in the lower half, which truncation would make an infinity and rounding a zero.
  EXPECT_TRUE(std::isnan(ToFloat(FromFloat(FloatOfBits(0x7f800001u), BF16{}))));
  EXPECT_TRUE(std::isnan(ToFloat(FromFloat(FloatOfBits(0xffffffffu), BF16{}))));
}

TEST(F16Test, ComesBackFromF32Unchanged) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const F16 value{static_cast<uint16_t>(bits)};
    const float wide = ToFloat(value);
    const int exponent = static_cast<int>(bits >> 10 & 31u);
    const double fraction = static_cast<double>(bits & 1023u);
    const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(wide), fraction != 0);
      EXPECT_EQ(std::isinf(wide), fraction == 0);
    } else {
      const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      ASSERT_EQ(static_cast<double>(wide), sign * magnitude);
    }
    if (!std::isnan(wide)) {
      ASSERT_EQ(FromFloat(wide, F16{}).bits, bits);
    }
  }
}

TEST(F16Test, RoundsToTheNearestBetweenEveryTwoNeighbours) {
  for (uint32_t bits = 0; bits < 0x7bffu; ++bits) {
    const float low = ToFloat(F16{static_cast<uint16_t>(bits)});
    const float high = ToFloat(F16{static_cast<uint16_t>(bits + 1)});
    const float middle = low + (high - low) / 2;  // exact in f32
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(FromFloat(middle, F16{}).bits, even);
    ASSERT_EQ(FromFloat(std::nextafter(middle, 0.0f), F16{}).bits, bits);
    ASSERT_EQ(FromFloat(std::nextafter(middle, kInfinity), F16{}).bits, bits + 1);
  }
}

TEST(F16Test, OverflowsToInfinityAndKeepsNan) {
  EXPECT_EQ(ToFloat(FromFloat(65519.0f, F16{})), 65504.0f);
  EXPECT_EQ(ToFloat(FromFloat(65520.0f, F16{})), kInfinity);
  EXPECT_EQ(ToFloat(FromFloat(-1e30f, F16{})), -kInfinity);
  EXPECT_EQ(ToFloat(FromFloat(1e-10f, F16{})), 0.0f);
  EXPECT_TRUE(std::isnan(ToFloat(FromFloat(kNan, F16{}))));
}

TEST(ExpTest, IsWithinTwoUnitsInTheLastPlace) {
  for (float x = -87.0f; x < 88.3f; x += 0.00137f) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_LE(std::fabs(static_cast<double>(Exp(x)) - exact), exact * 0x1p-23) << x;
  }
}

TEST(ExpTest, EndsAsTheFunctionDoes) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(-1e30f), 0.0f);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_EQ(Exp(89.0f), kInfinity);
  EXPECT_TRUE(std::isnan(Exp(kNan)));
  EXPECT_EQ(Exp(-88.0f), 0.0f);
}

double ReferenceGelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

TEST(GeluTest, AgreesWithTheTanhFormula) {
  for (float x = -12; x < 12; x += 0.0013f) {
    const double exact = ReferenceGelu(static_cast<double>(x));
    ASSERT_NEAR(static_cast<double>(Gelu(x)), exact, 1e-7 + 3e-7 * std::fabs(exact)) << x;
  }
}

TEST(GeluTest, DerivativeAgreesWithADifferenceOfTheFormula) {
  for (float x = -12; x < 12; x += 0.0017f) {
    const double h = 1e-5;
    const double slope =
        (ReferenceGelu(static_cast<double>(x) + h) - ReferenceGelu(static_cast<double>(x) - h)) / (2 * h);
    ASSERT_NEAR(static_cast<double>(GeluDerivative(x)), slope, 1e-6) << x;
  }
}

TEST(GeluTest, EndsAsTheFunctionDoes) {
  EXPECT_EQ(Gelu(1e30f), 1e30f);
  EXPECT_EQ(Gelu(-1e30f), 0.0f);
  EXPECT_EQ(GeluDerivative(1e30f), 1.0f);
  EXPECT_NEAR(static_cast<double>(GeluDerivative(-1e30f)), 0.0, 1e-30);
  EXPECT_TRUE(std::isnan(Gelu(kNan)));
  EXPECT_TRUE(std::isnan(GeluDerivative(kNan)));
}

TEST(SiluTest, AgreesWithItsFormulaAndADifferenceOfIt) {
  const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
  for (float x = -100; x < 100; x += 0.0113f) {
    const double exact = silu(static_cast<double>(x));
    const double slope = (silu(static_cast<double>(x) + 1e-5) - silu(static_cast<double>(x) - 1e-5)) / 2e-5;
    ASSERT_NEAR(static_cast<double>(SiluAndDerivative(x).first), exact, 1e-30 + 5e-7 * std::fabs(exact)) << x;
    ASSERT_NEAR(static_cast<double>(SiluAndDerivative(x).second), slope, 1e-6) << x;
  }
}

TEST(SiluTest, EndsAsTheFunctionDoes) {
  EXPECT_EQ(SiluAndDerivative(1e30f).first, 1e30f);
  EXPECT_EQ(SiluAndDerivative(1e30f).second, 1.0f);
  EXPECT_NEAR(static_cast<double>(SiluAndDerivative(-1e4f).first), 0.0, 1e-30);
  EXPECT_NEAR(static_cast<double>(SiluAndDerivative(-1e30f).second), 0.0, 1e-30);
  EXPECT_TRUE(std::isnan(SiluAndDerivative(kNan).first));
  EXPECT_TRUE(std::isnan(SiluAndDerivative(kNan).second));
}

}  // namespace
}  // namespace muster::kernels
