#include "preload/clock/workers.hpp"

#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/clock/thread_states.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

// How often MPI had been called when a thread was last where its instant is known; it is known no longer when another
// one has been in MPI since, for whatever waits for that may spin.
constexpr std::uint64_t not_known = ~std::uint64_t{0};

std::uint64_t calls_now() {
  if (phase() != Phase::running || inside_mpi()) return not_known;
  return dryfly_self.page->call_count.load(std::memory_order_relaxed);
}

bool is_since(std::uint64_t calls) { return calls != not_known && calls == calls_now(); }

struct Worker {
  std::atomic<pid_t> thread{0};  // 0: free
  std::atomic<std::uint64_t> calls{not_known};
  std::atomic<std::uint64_t> at_ps{0};
  std::atomic<std::uint64_t> cpu_ns{0};  // its processor time then

  void is_at(std::uint64_t now_ps, std::uint64_t now_ns) {
    at_ps.store(now_ps);
    cpu_ns.store(now_ns);
    calls.store(calls_now());
  }
  bool is_known() const { return is_since(calls.load()); }
  std::uint64_t come_to_ps(std::uint64_t now_ns) const {
    return at_ps.load() + computed_ps(now_ns - std::min(cpu_ns.load(), now_ns));
  }
};
constinit Worker workers[256];  // further threads are not known
__attribute__((tls_model("initial-exec"))) thread_local constinit Worker* own = nullptr;

std::atomic<std::uint64_t> released_ps{0};  // the latest instant at which one may have let others go on
std::uint64_t calls_at_wait = not_known;

std::uint64_t own_cpu_ns() { return real::now_ns(CLOCK_THREAD_CPUTIME_ID); }

void release_from(const Worker& worker) {
  if (!worker.is_known()) return;
  const std::uint64_t at_ps = worker.come_to_ps(own_cpu_ns());
  std::uint64_t latest_ps = released_ps.load();
  while (latest_ps < at_ps && !released_ps.compare_exchange_weak(latest_ps, at_ps)) {
  }
}

void enter_list() {
  for (Worker& each : workers) {
    pid_t nobody = 0;
    if (!each.thread.compare_exchange_strong(nobody, thread_id())) continue;
    own = &each;
    return own->is_at(main_comes_to_ps(), own_cpu_ns());
  }
}

void leave_list(void*) {
  Worker* const place = std::exchange(own, nullptr);
  if (place == nullptr) return;
  release_from(*place);
  place->calls.store(not_known);
  place->thread.store(0);
}

// Its destructor sees a thread off however that ends.
pthread_key_t key_of_end() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    pthread_key_create(&made, leave_list);
    return made;
  }();
  return key;
}

void* begin_thread(void* argument) {
  auto* const given = static_cast<ThreadStart*>(argument);
  const ThreadStart start = *given;
  free(given);
  enter_list();
  pthread_setspecific(key_of_end(), &workers);
  return start.function(start.argument);
}

}  // namespace

ThreadStart known_thread(void* (*function)(void*), void* argument) {
  auto* const start = static_cast<ThreadStart*>(malloc(sizeof(ThreadStart)));
  if (start == nullptr) return {function, argument};
  *start = {function, argument};
  key_of_end();  // made by one thread
  return {begin_thread, start};
}

void forget_thread(const ThreadStart& start) {
  if (start.function == begin_thread) free(start.argument);
}

void note_outside_mpi() {
  if (own != nullptr) own->is_at(instant(), own_cpu_ns());
}

void note_release() {
  if (own != nullptr) release_from(*own);
}

void note_woken() {
  if (own != nullptr) own->is_at(main_comes_to_ps(), own_cpu_ns());
}

std::uint64_t computed_up_to_ps() { return own != nullptr && own->is_known() ? own->come_to_ps(own_cpu_ns()) : 0; }

void begin_wait_for_workers() {
  calls_at_wait = calls_now();
  const std::uint64_t now_ps = main_comes_to_ps();
  for (Worker& each : workers) {
    const pid_t thread = each.thread.load();
    if (thread != 0 && !each.is_known()) each.is_at(now_ps, thread_cpu_ns(thread));
  }
}

std::uint64_t end_wait_for_workers() { return is_since(calls_at_wait) ? released_ps.load() : 0; }

}  // namespace dryfly::preload
