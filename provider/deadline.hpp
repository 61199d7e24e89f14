// Blocking calls (fi_cq_sread, fi_cntr_wait, fi_eq_sread): they wait in virtual time, whatever MPI call the rank is
// in, until an event or until their time-out has passed on the rank's clock. What can be given to poll(): wait.hpp.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

#include "provider/process.hpp"

namespace dryfly::provider {

inline bool wait_object_accepted(fi_wait_obj object) {
  return object == FI_WAIT_NONE || object == FI_WAIT_UNSPEC || object == FI_WAIT_YIELD;
}

// Counts from the first look at the clock.
class Deadline {
 public:
  // Negative: none.
  explicit Deadline(int timeout_ms) : timeout_ms_(timeout_ms) {}

  bool passed(const Session& session) {
    if (timeout_ms_ < 0) return false;
    return session.channel().now() >= at(session);
  }
  void wait(const Session& session) {
    session.channel().polls().idle_until(timeout_ms_ < 0 ? wire::far_future : at(session));
  }

 private:
  std::uint64_t at(const Session& session) {
    constexpr std::uint64_t ps_per_ms = 1'000'000'000;
    if (!started_) at_ps_ = session.channel().now() + static_cast<std::uint64_t>(timeout_ms_) * ps_per_ms;
    started_ = true;
    return at_ps_;
  }

  int timeout_ms_;
  bool started_ = false;
  std::uint64_t at_ps_ = 0;
};

}  // namespace dryfly::provider
