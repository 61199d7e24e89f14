// What a reduction of at most 32 bytes computes: by the reduction engines of the fabric's switches, and by the provider
// where contributions are reduced before they are given away (FI_MORE) and at the root. The operations are those of
// Rosetta as libfabric's cxi provider drives them (cxip_coll.c, fi_cxi(7)): bitwise on four words of 64 bits, whatever
// integers the application has in them; minimum, maximum and sum of four 64-bit integers or doubles; the extremes with
// their places; and a sum of doubles that is the same in whatever order.
//
// A minimum or maximum of doubles ignores NaNs while there is a number. Sums of doubles round as the contributing
// processes do; all have to do the same. The order of a sum that depends on it is the tree's
// (conductor/collective_groups.hpp). The reproducible sum keeps four bins of 40 bits below the largest contribution, as
// the machine's does; which bins, and so the last bits of a sum that needs more, may differ from it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::wire {

inline constexpr std::size_t reduction_words = 4;
inline constexpr std::size_t reduction_bytes_max = reduction_words * sizeof(std::uint64_t);

enum class ReductionOp : std::uint8_t {
  barrier,
  bit_and,
  bit_or,
  bit_xor,
  int_min,
  int_max,
  int_extremes,  // with places
  int_sum,
  double_min,
  double_max,
  double_extremes,
  reproducible_sum,
  double_sum,  // and seven more: with each way of rounding, then with each and results flushed to zero
};
inline constexpr std::uint8_t rounding_ways = 8;

// In the order in which one replaces another: the graver stays.
enum class ReductionStatus : std::uint8_t {
  success,
  inexact,
  overflow,  // of a double: infinite, or no number
  invalid,   // a signalling NaN
  integer_overflow,
  op_mismatch,
};

struct Contribution {
  std::uint64_t words[reduction_words];  // doubles as their bits; the reproducible sum has its bins here
  std::uint32_t count;                   // of contributions in it; 0: none, nothing else counts
  std::uint8_t op;                       // ReductionOp, and the way of rounding above double_sum
  std::uint8_t status;
  std::int16_t top_bin;  // of the reproducible sum
  std::uint64_t reserved[3];
};
static_assert(sizeof(Contribution) == 64);

// Of `bytes` of the application's data, none for a barrier.
void start_contribution(Contribution& made, std::uint8_t op, const void* data, std::size_t bytes);
// Another's into this one, which may be empty.
void combine(Contribution& into, const Contribution& other);
// What the application gets.
void finish(const Contribution& all, void* result, std::size_t bytes);

}  // namespace dryfly::wire
