#include "conductor/inbox.hpp"

#include <algorithm>
#include <thread>

namespace dryfly {

std::uint32_t processors_allowed() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::uint32_t>(CPU_COUNT(&allowed));
}

Inbox::Inbox(const Segment& segment)
    : header_(segment.header()),
      words_((segment.rank_count() + 63) / 64),
      processors_(processors_allowed()),
      gathering_(segment.header()) {
  spinner_.share_with(segment.rank_count());
  if (processors_ == 1) gathering_.gather();  // for good: a rank that spins only keeps the others waiting
}

void Inbox::ring() {
  header_.doorbell.fetch_add(1);
  wire::futex_wake(header_.doorbell);
}

void Inbox::ask(Rank& rank, std::uint64_t needed) {
  wire::Progress& progress = rank.page->progress;
  if (progress.has_herald.load(std::memory_order_relaxed) == 0) return;
  // The herald stores this and then looks at notify_at_ps: one of the two sees what the other has written.
  if (progress.looks_for_ps.load(std::memory_order_seq_cst) <= needed) return;
  progress.asked.fetch_add(1, std::memory_order_seq_cst);
  wire::futex_wake(progress.asked);
}

}  // namespace dryfly
