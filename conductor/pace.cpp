#include "conductor/pace.hpp"

#include <algorithm>
#include <cstdint>

namespace dryfly {

namespace {

using namespace std::chrono_literals;
using WallClock = std::chrono::steady_clock;
constexpr auto credit_max = 1ms;

}  // namespace

Instant Pace::limit(Instant limit) {
  const auto now = WallClock::now();
  const auto credit = std::min<WallClock::duration>(now - paced_at_, credit_max);
  paced_at_ = now;
  if (engine_.next() != never || limit == never) return limit;
  const auto credit_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(credit).count();
  const Instant allowed = clock_.processed_until() + Duration{static_cast<std::uint64_t>(credit_ns) * 1000};
  return std::min(limit, allowed);
}

long Pace::nap_ns() const {
  constexpr long longest_ns = 20'000'000;
  constexpr long look_ns = 1'000'000;
  const bool anybody_runs = clock_.running() != 0;
  const long nap = anybody_runs ? look_ns : longest_ns;
  if (anybody_runs || clock_.by_instant().empty()) return nap;
  const std::uint64_t next = clock_.by_instant().begin()->first;
  const std::uint64_t until = clock_.visible_until();
  const std::uint64_t ahead = next > until ? (next - until) / 1000 : 0;
  return std::min<long>(nap, static_cast<long>(std::min<std::uint64_t>(ahead, look_ns)) + 1);
}

}  // namespace dryfly
