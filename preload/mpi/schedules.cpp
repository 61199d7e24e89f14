#include "preload/mpi/schedules.hpp"

#include <atomic>

#include "preload/mpi/mpi_library.hpp"
#include "preload/mpi/spin_lock.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

struct Schedule {
  long request;
  bool asked_for;  // by the call that is under way
  Schedules what;
};
constexpr std::uint32_t schedule_max = 256;  // more at once count as messages
constinit Schedule schedules[schedule_max] = {};
std::atomic<std::uint32_t> schedule_count{0};
SpinLock guard;

struct List {
  long first;
  int count;
  std::size_t stride;
};

List list_of(Requests requests, const long* words) {
  const std::size_t stride = abi() == Abi::mpich ? sizeof(int) : sizeof(long);
  if (requests == Requests::many) return {words[1], static_cast<int>(words[0]), stride};
  if (requests == Requests::value) return {reinterpret_cast<long>(words), 1, sizeof(long)};
  return {words[0], 1, stride};
}

bool has(const List& list, long request) {
  for (int i = 0; i < list.count; ++i) {
    if (handle_at(list.first + static_cast<long>(list.stride) * i) == request) return true;
  }
  return false;
}

// What a call has asked for and its list no longer has is complete.
void forget_complete(const List& list) {
  const std::uint32_t known = schedule_count.load(std::memory_order_relaxed);
  std::uint32_t kept = 0;
  for (std::uint32_t i = 0; i < known; ++i) {
    if (schedules[i].asked_for && !has(list, schedules[i].request)) continue;
    schedules[kept] = schedules[i];
    schedules[kept++].asked_for = false;
  }
  schedule_count.store(kept, std::memory_order_relaxed);
}

Schedules of_call(bool reduces) {
  if (!reduces) return {wire::Schedule::collective, 0};
  return {wire::Schedule::reduction, dryfly_self.software.reduction_scale.load(std::memory_order_relaxed)};
}

}  // namespace

Schedules schedules_waited_for(Requests requests, const long* words) {
  Schedules found{};
  if (requests == Requests::none || requests == Requests::starts) return found;
  if (schedule_count.load(std::memory_order_relaxed) == 0) return found;
  const SpinLock::Hold hold(guard);
  const List list = list_of(requests, words);
  for (std::uint32_t i = 0; i < schedule_count.load(std::memory_order_relaxed); ++i) {
    schedules[i].asked_for = has(list, schedules[i].request);
    if (schedules[i].asked_for && schedules[i].what.kind > found.kind) found = schedules[i].what;
  }
  return found;
}

void note_schedules(Requests requests, const long* words, std::size_t count, bool reduces) {
  if (requests == Requests::starts) {
    const SpinLock::Hold hold(guard);
    const std::uint32_t known = schedule_count.load(std::memory_order_relaxed);
    if (known == schedule_max) return;
    schedules[known] = {handle_at(words[count - 1]), false, of_call(reduces)};
    schedule_count.store(known + 1, std::memory_order_relaxed);
  } else if (requests != Requests::none && schedule_count.load(std::memory_order_relaxed) != 0) {
    const SpinLock::Hold hold(guard);
    forget_complete(list_of(requests, words));
  }
}

}  // namespace dryfly::preload
