#include "conductor/atomics.hpp"

#include <doctest/doctest.h>

#include <complex>
#include <cstdint>
#include <optional>

namespace dryfly {
namespace {

// As libfabric numbers them (enum fi_op, enum fi_datatype).
constexpr std::uint8_t minimum = 0, maximum = 1, sum = 2, product = 3, bit_or = 6, bit_xor = 9, swap_equal = 12,
                       swap_greater_equal = 16, masked_swap = 18;
constexpr std::uint8_t of_int32 = 4, of_float64 = 9, of_complex32 = 10;

template <class T>
std::optional<T> result(std::uint8_t op, std::uint8_t type, T target, T operand, T compare = {}) {
  const bool defined =
      apply_atomic(op, type, reinterpret_cast<std::byte*>(&target), reinterpret_cast<const std::byte*>(&operand),
                   reinterpret_cast<const std::byte*>(&compare), sizeof target);
  return defined ? std::optional<T>(target) : std::nullopt;
}

TEST_CASE("an atomic does to integers what libfabric says; sums wrap around") {
  CHECK(result<std::int32_t>(minimum, of_int32, 3, -5) == -5);
  CHECK(result<std::int32_t>(maximum, of_int32, 3, -5) == 3);
  CHECK(result<std::int32_t>(sum, of_int32, INT32_MAX, 1) == INT32_MIN);
  CHECK(result<std::int32_t>(product, of_int32, 3, -5) == -15);
  CHECK(result<std::int32_t>(bit_or, of_int32, 0b1100, 0b1010) == 0b1110);
  CHECK(result<std::int32_t>(bit_xor, of_int32, 0b1100, 0b1010) == 0b0110);
  CHECK(result<std::int32_t>(swap_equal, of_int32, 3, 9, 3) == 9);
  CHECK(result<std::int32_t>(swap_equal, of_int32, 3, 9, 4) == 3);
  CHECK(result<std::int32_t>(swap_greater_equal, of_int32, 3, 9, 4) == 9);
  CHECK(result<std::int32_t>(swap_greater_equal, of_int32, 3, 9, 2) == 3);
  CHECK(result<std::int32_t>(masked_swap, of_int32, 0b1100, 0b0011, 0b0110) == 0b1010);
}

TEST_CASE("what needs bits is not defined for floating point, what needs an order is not for complex numbers") {
  CHECK(result<double>(sum, of_float64, 1.5, 2.0) == 3.5);
  CHECK(result<double>(minimum, of_float64, 1.5, 2.0) == 1.5);
  CHECK_FALSE(result<double>(bit_or, of_float64, 1.5, 2.0).has_value());
  CHECK_FALSE(result<double>(masked_swap, of_float64, 1.5, 2.0).has_value());
  using Complex = std::complex<float>;
  CHECK(result<Complex>(product, of_complex32, {0, 1}, {0, 1}) == Complex{-1, 0});
  CHECK(result<Complex>(swap_equal, of_complex32, {0, 1}, {2, 2}, {0, 1}) == Complex{2, 2});
  CHECK_FALSE(result<Complex>(maximum, of_complex32, {0, 1}, {2, 2}).has_value());
  CHECK_FALSE(result<Complex>(swap_greater_equal, of_complex32, {0, 1}, {2, 2}).has_value());
}

TEST_CASE("an element has the size of its type; a type that is not known has none") {
  CHECK(atomic_type_size(of_int32) == 4);
  CHECK(atomic_type_size(of_float64) == 8);
  CHECK(atomic_type_size(of_complex32) == 8);
  CHECK(atomic_type_size(200) == 0);
}

}  // namespace
}  // namespace dryfly
