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

// What has been called by all threads, where none of them is inside.
struct Quiet {
  std::uint64_t calls = 0;
  bool is = false;
  bool lasts() const { return is && calls == now().calls && now().is; }
  static Quiet now() {
    if (phase() != Phase::running) return {};
    return {dryfly_self.page->call_count.load(std::memory_order_relaxed), !inside_mpi()};
  }
};

struct Worker {
  std::atomic<pid_t> thread{0};  // 0: free
  std::atomic<std::uint64_t> at_wait_ns{0};
  std::uint64_t since_ps = 0;  // outside MPI
  std::uint64_t since_ns = 0;
  Quiet since{};
};
Worker workers[256];  // further threads are not known
__attribute__((tls_model("initial-exec"))) thread_local constinit Worker* own = nullptr;

// Of the present wait of the main thread.
std::atomic<std::uint64_t> longest_ended_ns{0};
Quiet wait_began{};

std::uint64_t own_cpu_ns() { return real::now_ns(CLOCK_THREAD_CPUTIME_ID); }

void raise_to(std::atomic<std::uint64_t>& value, std::uint64_t least) {
  std::uint64_t known = value.load();
  while (known < least && !value.compare_exchange_weak(known, least)) {
  }
}

std::uint64_t used_since(std::uint64_t before_ns, std::uint64_t now_ns) { return now_ns - std::min(before_ns, now_ns); }

void enter_list() {
  for (Worker& each : workers) {
    pid_t nobody = 0;
    if (!each.thread.compare_exchange_strong(nobody, thread_id())) continue;
    each.at_wait_ns.store(0);
    own = &each;
    return note_outside_mpi();
  }
}

void leave_list(void*) {
  Worker* const place = std::exchange(own, nullptr);
  if (place == nullptr) return;
  raise_to(longest_ended_ns, used_since(place->at_wait_ns.load(), own_cpu_ns()));
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
  if (own == nullptr || phase() != Phase::running) return;
  own->since_ps = instant();
  own->since_ns = own_cpu_ns();
  own->since = Quiet::now();
}

std::uint64_t computed_up_to_ps() {
  if (own == nullptr || !own->since.lasts()) return 0;
  return own->since_ps + computed_ps(used_since(own->since_ns, own_cpu_ns()));
}

void begin_wait_for_workers() {
  wait_began = Quiet::now();
  longest_ended_ns.store(0);
  for (Worker& each : workers) {
    const pid_t thread = each.thread.load();
    if (thread != 0) each.at_wait_ns.store(thread_cpu_ns(thread));
  }
}

std::uint64_t end_wait_for_workers() {
  if (!wait_began.lasts()) return 0;
  std::uint64_t longest_ns = longest_ended_ns.load();
  for (const Worker& each : workers) {
    const pid_t thread = each.thread.load();
    if (thread != 0) longest_ns = std::max(longest_ns, used_since(each.at_wait_ns.load(), thread_cpu_ns(thread)));
  }
  return longest_ns;
}

}  // namespace dryfly::preload
