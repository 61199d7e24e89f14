// What a link or a NIC has been given and has not sent, as the time it takes. It works that off without a pause. Loads
// come in about the order of time only, as ranks are ahead of the engine by a little: one that comes behind a later one
// waits for what that takes, and not until that is due.
#pragma once

#include <cstdint>

namespace dryfly::motif {

class Backlog {
 public:
  // What is left at that instant.
  std::uint64_t left_ps(std::uint64_t at_ps) const {
    if (at_ps <= since_ps_) return work_ps_;
    const std::uint64_t done_ps = at_ps - since_ps_;
    return work_ps_ > done_ps ? work_ps_ - done_ps : 0;
  }
  void add(std::uint64_t at_ps, std::uint64_t work_ps) {
    if (at_ps > since_ps_) {
      work_ps_ = left_ps(at_ps);
      since_ps_ = at_ps;
    }
    work_ps_ += work_ps;
  }

 private:
  std::uint64_t since_ps_ = 0;
  std::uint64_t work_ps_ = 0;
};

}  // namespace dryfly::motif
