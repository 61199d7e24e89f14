// The quantities of the simulator: instants and durations in integer picoseconds, sizes in bytes, rates in bytes
// per second, and ids that cannot be mixed up. Nothing here knows of networks. Text with units exists in Python
// only; what arrives here is already an integer in the base unit.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "core/unit/check.hpp"

namespace dryfly {

struct Duration {
  std::uint64_t ps = 0;
  constexpr auto operator<=>(const Duration&) const = default;
};

struct Instant {
  std::uint64_t ps = 0;
  constexpr auto operator<=>(const Instant&) const = default;
};

inline constexpr Instant never{std::numeric_limits<std::uint64_t>::max()};

constexpr Duration operator+(Duration a, Duration b) { return {a.ps + b.ps}; }
constexpr Duration operator*(Duration a, std::uint64_t n) { return {a.ps * n}; }
constexpr Instant operator+(Instant a, Duration b) { return a == never ? never : Instant{a.ps + b.ps}; }
constexpr Duration operator-(Instant a, Instant b) { return {a.ps - b.ps}; }

struct Bytes {
  std::uint64_t count = 0;
  constexpr auto operator<=>(const Bytes&) const = default;
};

constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }

struct Rate {
  std::uint64_t bytes_per_s = 0;
  constexpr auto operator<=>(const Rate&) const = default;
};

// Rounds up, so that a link never sends faster than its rate. The product needs 128 bits: in 64 bits it overflows
// from 18.4 MB on, well below one large MPI message.
constexpr Duration transmission_time(Bytes size, Rate rate) {
  DRYFLY_CHECK(rate.bytes_per_s > 0);
  __extension__ using Wide = unsigned __int128;
  const Wide scaled = static_cast<Wide>(size.count) * 1'000'000'000'000U;
  return {static_cast<std::uint64_t>((scaled + rate.bytes_per_s - 1) / rate.bytes_per_s)};
}

static_assert(transmission_time(Bytes{1}, Rate{25'000'000'000}) == Duration{40});

// An id is unique in the run; it converts to nothing by itself.
template <class Tag>
struct Id {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};

using NodeId = Id<struct NodeTag>;
using NicId = Id<struct NicTag>;
using SwitchId = Id<struct SwitchTag>;
using GroupId = Id<struct GroupTag>;
using RankId = Id<struct RankTag>;
using EndpointId = Id<struct EndpointTag>;

}  // namespace dryfly
