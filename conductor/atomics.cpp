#include "conductor/atomics.hpp"

#include <complex>
#include <cstring>
#include <type_traits>

namespace dryfly {

namespace {

// enum fi_op and enum fi_datatype of rdma/fi_domain.h; both are part of libfabric's ABI.
enum class Op : std::uint8_t {
  min,
  max,
  sum,
  prod,
  lor,
  land,
  bor,
  band,
  lxor,
  bxor,
  read,
  write,
  cswap,
  cswap_ne,
  cswap_le,
  cswap_lt,
  cswap_ge,
  cswap_gt,
  mswap,
  diff
};
enum class Type : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float32,
  float64,
  complex32,
  complex64,
  long_double,
  complex_long_double,
  int128,
  uint128
};

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <class T>
constexpr bool is_complex = false;
template <class T>
constexpr bool is_complex<std::complex<T>> = true;
template <class T>
constexpr bool is_integer = std::is_integral_v<T> || std::is_same_v<T, Int128> || std::is_same_v<T, UInt128>;

template <class T>
T truth(bool value) {
  return value ? T(1) : T(0);
}

// Integer sums wrap around as the hardware's do, hence the detour over unsigned arithmetic.
template <class T, class F>
T wrapping(T a, T b, F f) {
  if constexpr (std::is_same_v<T, Int128>) {
    return static_cast<T>(f(static_cast<UInt128>(a), static_cast<UInt128>(b)));
  } else if constexpr (is_integer<T> && sizeof(T) <= 8) {
    return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  } else {
    return f(a, b);
  }
}

// What is defined for every type.
template <class T>
bool combine_any(Op op, T& target, const T& operand, const T& compare) {
  switch (op) {
    case Op::sum:
      target = wrapping(target, operand, [](auto a, auto b) { return a + b; });
      return true;
    case Op::diff:
      target = wrapping(target, operand, [](auto a, auto b) { return a - b; });
      return true;
    case Op::prod:
      target = wrapping(target, operand, [](auto a, auto b) { return a * b; });
      return true;
    case Op::lor:
      target = truth<T>(target != T(0) || operand != T(0));
      return true;
    case Op::land:
      target = truth<T>(target != T(0) && operand != T(0));
      return true;
    case Op::lxor:
      target = truth<T>((target != T(0)) != (operand != T(0)));
      return true;
    case Op::read:
      return true;
    case Op::write:
      target = operand;
      return true;
    case Op::cswap:
      if (compare == target) target = operand;
      return true;
    case Op::cswap_ne:
      if (compare != target) target = operand;
      return true;
    default:
      return false;
  }
}

// What needs an order: not complex numbers.
template <class T>
bool combine_ordered(Op op, T& target, const T& operand, const T& compare) {
  switch (op) {
    case Op::min:
      if (operand < target) target = operand;
      return true;
    case Op::max:
      if (operand > target) target = operand;
      return true;
    case Op::cswap_le:
      if (compare <= target) target = operand;
      return true;
    case Op::cswap_lt:
      if (compare < target) target = operand;
      return true;
    case Op::cswap_ge:
      if (compare >= target) target = operand;
      return true;
    case Op::cswap_gt:
      if (compare > target) target = operand;
      return true;
    default:
      return false;
  }
}

// What needs bits: integers.
template <class T>
bool combine_bits(Op op, T& target, const T& operand, const T& compare) {
  switch (op) {
    case Op::bor:
      target = static_cast<T>(target | operand);
      return true;
    case Op::band:
      target = static_cast<T>(target & operand);
      return true;
    case Op::bxor:
      target = static_cast<T>(target ^ operand);
      return true;
    case Op::mswap:
      target = static_cast<T>((operand & compare) | (target & ~compare));
      return true;
    default:
      return false;
  }
}

template <class T>
bool combine(Op op, T& target, const T& operand, const T& compare) {
  if (combine_any(op, target, operand, compare)) return true;
  if constexpr (!is_complex<T>) {
    if (combine_ordered(op, target, operand, compare)) return true;
  }
  if constexpr (is_integer<T>) return combine_bits(op, target, operand, compare);
  return false;
}

template <class T>
bool apply_all(Op op, std::byte* target, const std::byte* operand, const std::byte* compare, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T t{}, o{}, c{};
    std::memcpy(&t, target + at, sizeof t);
    if (operand != nullptr) std::memcpy(&o, operand + at, sizeof o);
    if (compare != nullptr) std::memcpy(&c, compare + at, sizeof c);
    if (!combine(op, t, o, c)) return false;
    std::memcpy(target + at, &t, sizeof t);
  }
  return true;
}

// Calls visit with a value of the C++ type that `type` stands for.
template <class Visit>
auto with_type(std::uint8_t type, Visit visit) {
  switch (static_cast<Type>(type)) {
    case Type::int8:
      return visit(std::int8_t{});
    case Type::uint8:
      return visit(std::uint8_t{});
    case Type::int16:
      return visit(std::int16_t{});
    case Type::uint16:
      return visit(std::uint16_t{});
    case Type::int32:
      return visit(std::int32_t{});
    case Type::uint32:
      return visit(std::uint32_t{});
    case Type::int64:
      return visit(std::int64_t{});
    case Type::uint64:
      return visit(std::uint64_t{});
    case Type::float32:
      return visit(float{});
    case Type::float64:
      return visit(double{});
    case Type::complex32:
      return visit(std::complex<float>{});
    case Type::complex64:
      return visit(std::complex<double>{});
    case Type::long_double:
      return visit(0.0L);
    case Type::complex_long_double:
      return visit(std::complex<long double>{});
    case Type::int128:
      return visit(Int128{});
    case Type::uint128:
      return visit(UInt128{});
  }
  return decltype(visit(std::int8_t{})){};
}

}  // namespace

std::size_t atomic_type_size(std::uint8_t type) {
  return with_type(type, [](auto value) { return sizeof value; });
}

bool apply_atomic(std::uint8_t op, std::uint8_t type, std::byte* target, const std::byte* operand,
                  const std::byte* compare, std::uint64_t bytes) {
  return with_type(type, [&](auto value) {
    return apply_all<decltype(value)>(static_cast<Op>(op), target, operand, compare, bytes);
  });
}

}  // namespace dryfly
