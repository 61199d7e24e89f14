// What a rank has been charged for the MPI library's own code, by MPI call and by kind of interval, for the result of
// the run. An account is of one call; what it counts lies in the rank's page, which outlives the rank.
//
// Several threads may add at once, and then lose some of what they count: the intervals of such threads are nobody's in
// particular (docs/model/software.md#left-out), and nothing that is timed reads them.
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly::rank {

inline constexpr std::uint32_t boundary_count = 17;
// In the place of both boundaries: what the library has copied.
inline constexpr std::uint8_t copied = boundary_count - 1;
// In the place of the second one: what it has put together from blocks, or taken apart.
inline constexpr std::uint8_t packed = 0;
// And where it has asked a GPU's runtime whose memory a buffer is.
inline constexpr std::uint8_t looked = 1;

// No locked instruction, for there are several sums to each interval.
inline void raise(std::atomic<std::uint64_t>& sum, std::uint64_t by) {
  sum.store(sum.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}
inline void raise(std::uint64_t& sum, std::uint64_t by) {
  __atomic_store_n(&sum, __atomic_load_n(&sum, __ATOMIC_RELAXED) + by, __ATOMIC_RELAXED);
}

struct SoftwareAccount {
  std::uint16_t places[boundary_count][boundary_count];  // in SoftwareSpending::spent; 0: no such interval yet
  std::uint16_t call;                                    // as in the profile
  wire::RankPage* page;

  void add(std::uint8_t from, std::uint8_t to, std::uint64_t bytes, std::uint64_t ps) {
    std::uint16_t place = __atomic_load_n(&places[from][to], __ATOMIC_RELAXED);
    if (place == 0) {
      place = take(from, to);
      __atomic_store_n(&places[from][to], place, __ATOMIC_RELAXED);
    }
    wire::SoftwareSpent& spent = page->software.spent[place];
    raise(spent.count, 1);
    raise(spent.bytes, bytes);
    raise(spent.ps, ps);
  }

 private:
  // 0 when all are taken.
  std::uint16_t take(std::uint8_t from, std::uint8_t to) const {
    const std::uint32_t kinds = __atomic_load_n(&page->software.kinds, __ATOMIC_RELAXED);
    if (kinds + 1 >= wire::software_spent_count) return 0;
    __atomic_store_n(&page->software.kinds, kinds + 1, __ATOMIC_RELAXED);
    wire::SoftwareSpent& spent = page->software.spent[kinds + 1];
    spent.call = call;
    spent.from = from;
    spent.to = to;
    return static_cast<std::uint16_t>(kinds + 1);
  }
};

}  // namespace dryfly::rank
