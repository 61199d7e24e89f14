// The channel of a process on a served fabric (dryfly serve): how long its polls wait, and how it sleeps on a
// descriptor.
#include <sys/socket.h>

#include "rank/channel.hpp"

namespace dryfly::wire {

namespace {

constexpr std::uint64_t first_step_ps = 100'000;
constexpr std::uint32_t served_doublings = 13;  // up to 0.8 ms
constexpr std::uint32_t crowded_doublings = 3;  // up to 0.8 us

}  // namespace

// A program that only polls may do anything between two polls, and other programs may come at any time. So a poll that
// finds nothing waits, but not for long: in steps that grow, and hardly at all where another thread wants the provider.
std::uint64_t Channel::step_ps() const {
  const std::uint32_t most = crowded_ ? crowded_doublings : served_doublings;
  return first_step_ps << (empty_polls_ < most ? empty_polls_ : most);
}

// Another thread of this process may want the provider meanwhile.
std::uint64_t Channel::sooner(std::uint64_t deadline_ps) {
  const std::uint64_t step = step_ps();
  ++empty_polls_;
  return step < deadline_ps - now() ? now() + step : deadline_ps;
}

bool Channel::may_sleep() {
  char bytes[64];
  while (recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
  }
  if (jump_to_head()) return false;
  page_->wants_byte.store(1, std::memory_order_seq_cst);
  gate(GateKind::outside);
  if (head() == nullptr) return true;
  page_->wants_byte.store(0, std::memory_order_relaxed);
  gate(GateKind::inside);
  return !jump_to_head();
}

}  // namespace dryfly::wire
