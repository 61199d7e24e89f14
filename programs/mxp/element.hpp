// The two forms in which the matrix is stored: BF16 (the upper half of an FP32, rounded to nearest even) and FP32.
#pragma once

#include <bit>
#include <cstdint>

namespace dryfly::mxp {

enum class Precision { bf16, fp32 };

using Bf16 = std::uint16_t;

inline float to_float(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }
inline float to_float(float value) { return value; }

template <class Element>
Element from_float(float value);

template <>
inline float from_float<float>(float value) {
  return value;
}

template <>
inline Bf16 from_float<Bf16>(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<Bf16>((bits >> 16) | 0x40);  // NaN stays NaN
  return static_cast<Bf16>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline std::int64_t element_bytes(Precision precision) { return precision == Precision::bf16 ? 2 : 4; }

}  // namespace dryfly::mxp
