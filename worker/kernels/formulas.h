// The arithmetic of one element, written once for the processor and for CUDA: number formats, exp, GELU.
//
// No branches, because a loop over these must become SIMD code: conditions are selections, and NaN and infinity come
// out as they would from the textbook formula. Everything has internal linkage: the processor's row kernels compile
// this file once for each instruction set, and the linker must not replace one set's code by another's. For the same
// reason nothing of the standard library's templates is called here. Plain C++17; all functions are pure.
#pragma once

#include <cstdint>

// MUSTER_KERNEL_FUNCTION: a formula. MUSTER_ROW_BODY: the member function that is a row kernel's body.
#ifdef __CUDACC__
#define MUSTER_KERNEL_FUNCTION static __device__ __forceinline__
#define MUSTER_ROW_BODY __device__ __forceinline__
#else
#define MUSTER_KERNEL_FUNCTION static inline __attribute__((always_inline))
#define MUSTER_ROW_BODY inline __attribute__((always_inline))
#endif

namespace muster::kernels {

struct BF16 {  // bfloat16: the upper half of an f32
  uint16_t bits;
};
struct F16 {  // IEEE 754 half: 5 bits of exponent, 10 of fraction
  uint16_t bits;
};

struct Two {  // what a formula with two results gives
  float first;
  float second;
};

// ---- bits ---------------------------------------------------------------------------------------------------------

MUSTER_KERNEL_FUNCTION float FloatOfBits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

MUSTER_KERNEL_FUNCTION uint32_t BitsOfFloat(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// ---- number formats: to f32 exactly, from f32 to the nearest, ties to even ----------------------------------------

MUSTER_KERNEL_FUNCTION float ToFloat(float value) { return value; }

MUSTER_KERNEL_FUNCTION float ToFloat(BF16 value) { return FloatOfBits(static_cast<uint32_t>(value.bits) << 16); }

MUSTER_KERNEL_FUNCTION float ToFloat(F16 value) {
  const uint32_t magnitude = value.bits & 0x7fffu;
  // The fraction and exponent in their places, the exponent 112 too small; the product mends it, subnormals included.
  const float scaled = FloatOfBits(magnitude << 13) * 0x1p112f;
  const uint32_t finite = BitsOfFloat(scaled);
  const uint32_t special = (magnitude << 13) | 0x7f800000u;  // infinity, NaN
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  return FloatOfBits(sign | (magnitude >= 0x7c00u ? special : finite));
}

// The conversions from f32 are chosen by a value of the type wanted, as a template would be.
MUSTER_KERNEL_FUNCTION float FromFloat(float value, float) { return value; }

MUSTER_KERNEL_FUNCTION BF16 FromFloat(float value, BF16) {
  const uint32_t bits = BitsOfFloat(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;  // adding to a NaN could carry it into infinity
  return BF16{static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded)};
}

MUSTER_KERNEL_FUNCTION F16 FromFloat(float value, F16) {
  const uint32_t bits = BitsOfFloat(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Normal results: move the exponent by -112 and round at bit 13; a carry runs into the exponent, and into infinity.
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal results (below 2^-14): adding 0.5 leaves multiples of 2^-24 in the last bits, rounded by the addition.
  const uint32_t subnormal = BitsOfFloat(FloatOfBits(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  const uint32_t special = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return F16{static_cast<uint16_t>(sign | (magnitude >= 0x477ff000u ? special : finite))};  // 65520 rounds to infinity
}

// ---- functions ----------------------------------------------------------------------------------------------------

MUSTER_KERNEL_FUNCTION float Maximum(float a, float b) { return a > b ? a : b; }  // b when either is NaN

MUSTER_KERNEL_FUNCTION float SquareRoot(float x) {
#ifdef __CUDACC__
  return sqrtf(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// x y + z, for matrix products that are written out: on a GPU in one instruction, which rounds once.
MUSTER_KERNEL_FUNCTION float MultiplyAdd(float x, float y, float z) {
#ifdef __CUDACC__
  return fmaf(x, y, z);
#else
  return x * y + z;
#endif
}

// One call for a row; not for loops over elements.
MUSTER_KERNEL_FUNCTION float Logarithm(float x) {
#ifdef __CUDACC__
  return logf(x);
#else
  return __builtin_logf(x);
#endif
}

// e^x within 2 units in the last place from -87.3 to 88.3; 0 below and infinity above: nothing here needs subnormals.
// x = n ln 2 + r with |r| <= ln 2 / 2, then Taylor to r^7 (the remainder is below 6e-9), then the exponent n.
MUSTER_KERNEL_FUNCTION float Exp(float x) {
  const float limited = x > 88.5f ? 88.5f : x;  // written so that NaN passes
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
  const float shifted = limited * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (limited - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts, the first exact in 10 bits
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  // The low bits of `shifted` are n; 127 more is the exponent of 2^n, and the shift drops what stands above them.
  const float power = FloatOfBits((BitsOfFloat(shifted) + 127u) << 23);
  return x < -87.3f ? 0.0f : p * power;
}

MUSTER_KERNEL_FUNCTION float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

// SiLU (Elfwing et al. 2017), x sigmoid(x), and its derivative s + x s (1 - s), s = 1 / (1 + e), 1 - s = e s.
MUSTER_KERNEL_FUNCTION Two SiluAndDerivative(float x) {
  // Beyond 80 the derivative is 0 or 1 in f32, and e might overflow into infinity times zero.
  const float low = x < -80.0f ? -80.0f : x;
  const float limited = low > 80.0f ? 80.0f : low;
  const float e = Exp(-limited);
  const float s = 1.0f / (1.0f + e);
  return Two{x * s, s + limited * s * (e * s)};
}

// GPT-2's GELU (Hendrycks and Gimpel 2016, section 2): x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), computed
// as x sigmoid(2u), which is the same function and keeps its precision where x is very negative.
MUSTER_KERNEL_FUNCTION float Gelu(float x) {
  const float twice_u = 1.59576912f * (x + 0.044715f * x * x * x);
  return x * Sigmoid(twice_u);
}

// d gelu / dx = s + x s (1 - s) 2u', s = sigmoid(2u) = 1 / (1 + e), 1 - s = e s.
MUSTER_KERNEL_FUNCTION float GeluDerivative(float x) {
  // Beyond 10 the derivative is 0 or 1 in f32, and e might overflow into infinity times zero.
  const float low = x < -10.0f ? -10.0f : x;
  const float limited = low > 10.0f ? 10.0f : low;
  const float square = limited * limited;
  const float e = Exp(-1.59576912f * (limited + 0.044715f * limited * square));
  const float s = 1.0f / (1.0f + e);
  return s + limited * s * (e * s) * 1.59576912f * (1.0f + 3 * 0.044715f * square);
}

}  // namespace muster::kernels
