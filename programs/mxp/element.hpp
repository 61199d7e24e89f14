// The forms in which the matrix is stored: BF16 (the upper half of an FP32), FP16 (IEEE binary16) and FP32, all rounded
// to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace dryfly::mxp {

enum class Precision { bf16, fp16, fp32 };

using Bf16 = std::uint16_t;
enum class Half : std::uint16_t {};

inline float to_float(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }
inline float to_float(float value) { return value; }

// Without branches, so that loops of it become vector instructions. The product puts the exponent right, for numbers
// below the normal ones too; infinity and NaN come out as 2^16 and more, and get the exponent that says so.
inline float to_float(Half value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value);
  const float size = std::bit_cast<float>((bits & 0x7fff) << 13) * 0x1p112f;
  const std::uint32_t special = size >= 0x1p16f ? 0x7f800000 : 0;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(size) | special | (bits & 0x8000) << 16);
}

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

template <>
inline Half from_float<Half>(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
  const std::uint32_t normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
  // Below 2^-14 an addition rounds at the place of the last bit that there is.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000;
  const std::uint32_t special = size > 0x7f800000 ? 0x7e00 : 0x7c00;
  return static_cast<Half>(sign | (size >= 0x47800000 ? special : size < 0x38800000 ? small : normal));
}

constexpr std::int64_t element_bytes(Precision precision) { return precision == Precision::fp32 ? 4 : 2; }

constexpr const char* precision_name(Precision precision) {
  return precision == Precision::bf16 ? "BF16" : precision == Precision::fp16 ? "FP16" : "FP32";
}

// Calls `work` with a null pointer to the type of the elements.
template <class Work>
void with_element(Precision precision, Work&& work) {
  if (precision == Precision::bf16)
    work(static_cast<Bf16*>(nullptr));
  else if (precision == Precision::fp16)
    work(static_cast<Half*>(nullptr));
  else
    work(static_cast<float*>(nullptr));
}

}  // namespace dryfly::mxp
