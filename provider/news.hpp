// Decides whether an empty poll may let virtual time pass. It may not while something has been reported to another
// queue or counter of the process that the program has not looked at yet: a program that polls several in turn would
// otherwise wait, in one of them, for an event that it already has. A program that has looked at as many queues as
// there are and taken nothing meanwhile is not going to, so the news is old then.
#pragma once

#include <cstdint>

#include "core/unit/check.hpp"

namespace dryfly::provider {

// One completion queue or counter.
struct Outlet {
  Outlet* next;
  Outlet* previous;
  std::uint32_t fresh;  // reports that the program has not seen
};

class News {
 public:
  void add(Outlet& outlet) {
    outlet.next = first_;
    outlet.previous = nullptr;
    if (first_ != nullptr) first_->previous = &outlet;
    first_ = &outlet;
    ++outlets_;
  }
  void remove(Outlet& outlet) {
    seen(outlet, 0);
    (outlet.previous != nullptr ? outlet.previous->next : first_) = outlet.next;
    if (outlet.next != nullptr) outlet.next->previous = outlet.previous;
    --outlets_;
  }
  void reported(Outlet& outlet) {
    ++outlet.fresh;
    ++fresh_;
    looks_ = 0;
  }
  // The program has looked; `left` reports it did not take.
  void seen(Outlet& outlet, std::uint64_t left) {
    if (outlet.fresh <= left) return;
    DRYFLY_CHECK(fresh_ >= outlet.fresh);  // it is the sum over the outlets
    fresh_ -= outlet.fresh - static_cast<std::uint32_t>(left);
    outlet.fresh = static_cast<std::uint32_t>(left);
    looks_ = 0;
  }
  // An empty poll.
  bool may_wait() {
    if (fresh_ != 0 && ++looks_ < outlets_) return false;
    for (Outlet* outlet = first_; outlet != nullptr; outlet = outlet->next) seen(*outlet, 0);
    looks_ = 0;
    return true;
  }

 private:
  Outlet* first_ = nullptr;
  std::uint32_t outlets_ = 0;
  std::uint64_t fresh_ = 0;
  std::uint32_t looks_ = 0;
};

}  // namespace dryfly::provider
