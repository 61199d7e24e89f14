// The rank's side of the order in which the ranks of a node are inside MPI (conductor/batons.hpp).
#include "rank/channel.hpp"

namespace dryfly::wire {

// Where the ranks of a node talk through memory, a wait ends at an event, at the deadline, or when another rank of the
// node may have written. The rank is always asked for, and told the instant: what it finds in memory must not depend on
// whether its next event is in the ring already.
bool Channel::wait_with_node(GateKind kind, std::uint64_t deadline_ps) {
  const std::uint64_t at = now();
  request(kind, deadline_ps);
  turns_taken_ = 0;
  self_->has_acted.store(0, std::memory_order_relaxed);
  if (now() > at) {
    self_->waited_ps.fetch_add(now() - at, std::memory_order_relaxed);
    publish();
  }
  if (peek() != nullptr) return true;
  // Behind the end of virtual time nobody moves a rank's clock but itself.
  return page_->all_ended.load(std::memory_order_acquire) != 0 && jump_to_head();
}

void Channel::renew_baton() {
  if (header_->nodes_share_memory == 0 || now() == baton_ps_) return;
  const auto mode = static_cast<CallMode>(self_->call_mode.load(std::memory_order_relaxed));
  const bool has_baton = mode == CallMode::blocking || mode == CallMode::testing;
  if (!has_baton || self_->thread_multiple.load(std::memory_order_relaxed) != 0) return;
  request(GateKind::baton, 0);
}

void Channel::give_baton_back() {
  page_->baton_end_ps = now();
  page_->baton_ends.fetch_add(1, std::memory_order_seq_cst);
  page_->clock_ps.store(now(), std::memory_order_seq_cst);
  raise_attention();
}

}  // namespace dryfly::wire
