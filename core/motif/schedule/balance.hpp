// Does every message of a schedule have its receive? Counted for each rank that receives before anything runs, in 24
// bytes for a rank. Where a receive takes messages of any source or tag only the number of messages is known before.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/motif/job/rank.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::motif {

// A send or a receive of a schedule, and the number of its step there.
struct Exchange {
  std::uint32_t source = 0;  // of a receive: may be any_rank
  std::uint32_t target = 0;
  std::uint32_t tag = 0;  // of a receive: may be any_tag
  bool sends = false;
  std::uint64_t step = 0;
};

// Calls for each exchange of the schedule.
using EachExchange = std::function<void(const std::function<void(const Exchange&)>&)>;

struct Unmatched {
  Exchange exchange;
  std::string why;  // a sentence without its subject
};

// The first that is left over, if one is.
std::optional<Unmatched> find_unmatched(std::uint32_t ranks, const EachExchange& each);

}  // namespace dryfly::motif
