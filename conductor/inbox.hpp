// What comes from the ranks' pages, and the wait for it: each rank that wants to be looked at sets its bit, and rings
// the bell if the conductor sleeps.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "conductor/gathering.hpp"
#include "conductor/rank.hpp"
#include "conductor/segment.hpp"
#include "wire/futex.hpp"
#include "wire/spinner.hpp"

namespace dryfly {

// Those that this process may use, not those that the box has: a container or a batch job may confine it to one.
std::uint32_t processors_allowed();

class Inbox {
 public:
  explicit Inbox(const Segment& segment);

  bool has_any() const {
    for (std::size_t word = 0; word < words_; ++word) {
      if (header_.attention[word].load(std::memory_order_seq_cst) != 0) return true;
    }
    return false;
  }
  // Calls look(rank's number) for each that wants it; true if any did.
  template <typename Look>
  bool take(const Look& look);

  // Somebody else has something for the conductor.
  void ring();
  // Until a rank has something, or `is_there()`, or the rank's clock has come to `needed`; a rank that is null has no
  // clock that counts. No longer than that, and maybe shorter. `busy`: ranks that need a processor themselves. False if
  // it came while the conductor was still awake.
  template <typename IsThere>
  bool wait(Rank* rank, std::uint64_t needed, std::uint32_t busy, long nap_ns, const IsThere& is_there);
  std::uint64_t sleeps() const { return sleeps_; }

 private:
  // A wait; counts it among the quick ones in a row, or ends their row.
  class Turn {
   public:
    explicit Turn(std::uint32_t& quick_turns) : quick_turns_(quick_turns), began_ns_(wire::Spinner::now_ns()) {}
    ~Turn() { quick_turns_ = wire::Spinner::now_ns() - began_ns_ < quick_ns ? quick_turns_ + 1 : 0; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    static constexpr std::int64_t quick_ns = 30'000;

    std::uint32_t& quick_turns_;
    std::int64_t began_ns_;
  };

  static constexpr int spin_steps = 200;
  static constexpr long patience_ns = 100'000;  // about what these take
  // Whoever has answered so often at once is about to do so again: then a processor is well spent on spinning, even
  // where a rank could use it.
  static constexpr std::uint32_t quick_turns_min = 16;

  // The rank is to say, if it computes, when it has come that far; notify_at_ps has been set.
  static void ask(Rank& rank, std::uint64_t needed);

  wire::SegmentHeader& header_;
  std::size_t words_;
  std::uint32_t processors_;
  wire::Spinner spinner_{20};  // some 2 us, which is what a rank takes for a short answer
  Gathering gathering_;
  std::uint64_t sleeps_ = 0;
  std::uint32_t quick_turns_ = 0;  // in a row
};

template <typename Look>
bool Inbox::take(const Look& look) {
  bool any = false;
  for (std::size_t word = 0; word < words_; ++word) {
    if (header_.attention[word].load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t bits = header_.attention[word].exchange(0, std::memory_order_seq_cst);
    any = any || bits != 0;
    for (; bits != 0; bits &= bits - 1) look(word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits)));
  }
  return any;
}

template <typename IsThere>
bool Inbox::wait(Rank* rank, std::uint64_t needed, std::uint32_t busy, long nap_ns, const IsThere& is_there) {
  const auto clock_moved = [&] { return rank != nullptr && wire::earliest_ps(*rank->page) >= needed; };
  const auto wakes = [&] { return has_any() || is_there() || clock_moved(); };
  // Spinning pays only while a processor has nothing better to do; the only one always has.
  const bool rests = spinner_.is_resting();
  if (!rests && processors_ > 1) gathering_.disperse();
  const Turn turn(quick_turns_);
  if (processors_ > 1 && (busy < processors_ || quick_turns_ >= quick_turns_min)) {
    header_.conductor_processor.store(static_cast<std::uint32_t>(sched_getcpu() + 1), std::memory_order_relaxed);
    if (spinner_.spin(spin_steps, wakes)) return false;
  }
  if (rank != nullptr) rank->page->notify_at_ps.store(needed, std::memory_order_seq_cst);
  const std::uint32_t seen = header_.doorbell.load(std::memory_order_seq_cst);
  header_.conductor_asleep.store(1, std::memory_order_seq_cst);
  if (!wakes()) {
    if (rests && processors_ > 1) gathering_.sleeps_beside(busy);
    ++sleeps_;
    // With all processors busy nobody whom the answer lets go on could do so.
    const bool asks = rank != nullptr && busy < processors_ && needed != wire::far_future;
    // Without a spin before, most answers come sooner than the herald could say anything.
    if (asks && rests) wire::futex_wait(header_.doorbell, seen, std::min(patience_ns, nap_ns));
    if (asks && header_.doorbell.load(std::memory_order_seq_cst) == seen) ask(*rank, needed);
    wire::futex_wait(header_.doorbell, seen, nap_ns);  // comes back at once if the bell has rung
  }
  header_.conductor_asleep.store(0, std::memory_order_seq_cst);
  return true;
}

}  // namespace dryfly
