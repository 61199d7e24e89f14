#include "conductor/standstill.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "preload/mpi/call_names.hpp"

namespace dryfly {

namespace {

using namespace std::chrono_literals;
constexpr auto look_interval = 200ms;
constexpr auto say_after = 10s;

}  // namespace

std::string call_name(std::uint32_t index) {
  if (index != 0 && index <= preload::call_name_count) return preload::call_names[index - 1];
  return "no MPI call";
}

void Standstill::look() {
  const auto now = WallClock::now();
  if (now - looked_at_ < look_interval) return;
  const auto passed = std::min<WallClock::duration>(now - looked_at_, 2 * look_interval);
  looked_at_ = now;
  lasts_ += passed;
  if (!only_looks_since_last()) {
    lasts_ = {};
    said_ = false;
    return;
  }
  if (said_ || lasts_ < say_after) return;
  if (!job_.only_peeks_under_way()) {
    lasts_ = {};
    return;
  }
  said_ = true;
  say();
}

bool Standstill::only_looks_since_last() {
  const std::uint64_t others = std::exchange(others_, job_.peeks().others());
  const std::uint64_t writes = std::exchange(writes_, batons_.writes());
  bool only = clock_.runs() && others == others_ && writes == writes_;
  bool any = false;
  for (const Rank& rank : ranks_) {
    Last& last = last_[rank.id.value];
    const std::uint64_t calls = rank.page->call_count.load(std::memory_order_relaxed);
    const bool calls_on = std::exchange(last.calls, calls) != calls;
    if (const auto call = rank.page->call_index.load(std::memory_order_relaxed); call != 0) last.call = call;
    last.looks = false;
    switch (rank.state) {
      case RankState::waiting:
      case RankState::meeting:
      case RankState::ending:
        break;
      case RankState::running:
      case RankState::queued:
      case RankState::polling:
        last.looks = true;
        any = true;
        only = only && calls_on;  // one that does not call computes
        break;
      case RankState::absent:
      case RankState::starting:
      case RankState::timed:
      case RankState::away:
      case RankState::ended:
      case RankState::gone:
        only = false;
        break;
    }
  }
  return only && any;
}

void Standstill::say() const {
  for (const Rank& rank : ranks_) {
    const Last& last = last_[rank.id.value];
    if (!last.looks) continue;
    status_.say("looking " + std::to_string(rank.id.value) + " " + std::to_string(rank.process.pid) + " " +
                call_name(last.call));
  }
}

}  // namespace dryfly
