#include "preload/clock/workers.hpp"

#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/clock/thread_states.hpp"
#include "preload/clock/threads.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

struct Worker {
  std::atomic<pid_t> thread{0};  // 0: free
  std::atomic<std::uint64_t> at_ps{0};
  std::atomic<std::uint64_t> cpu_ns{0};  // its processor time then
  std::atomic<bool> waits{false};        // and so computes nothing
  std::uint64_t calls = not_quiet;       // when it began, or left MPI

  void is_at(std::uint64_t now_ps, std::uint64_t now_ns) {
    at_ps.store(now_ps);
    cpu_ns.store(now_ns);
  }
  std::uint64_t comes_to_ps(std::uint64_t now_ns) const {
    const std::uint64_t came_from_ps = at_ps.load();
    const std::uint64_t comes_to = came_from_ps + computed_ps(now_ns - std::min(cpu_ns.load(), now_ns));
    return inside_mpi() ? std::min(comes_to, std::max(came_from_ps, instant())) : comes_to;
  }
};
constinit Worker workers[256];  // further threads are not known
std::atomic<std::size_t> places_used{0};
__attribute__((tls_model("initial-exec"))) thread_local constinit Worker* own = nullptr;

// Behind an MPI call a thread finds the program in no cache, and on a busy computer one gap in fifty takes tens of
// microseconds by that alone; what looking takes is not known as it is of the main thread.
constexpr std::uint64_t free_behind_call_ns = 50'000;

// When each was last released at the latest, by its address.
std::atomic<std::uint64_t> released_ps[1024];

std::atomic<std::uint64_t>& released_at(const void* object) {
  const auto address = reinterpret_cast<std::uintptr_t>(object);
  return released_ps[(address >> 3 ^ address >> 13) % std::size(released_ps)];
}

template <typename Value>
void raise_to(std::atomic<Value>& value, Value least) {
  Value known = value.load();
  while (known < least && !value.compare_exchange_weak(known, least)) {
  }
}

std::uint64_t own_cpu_ns() { return real::now_ns(CLOCK_THREAD_CPUTIME_ID); }

// Where the calling thread is.
std::uint64_t own_instant_ps() {
  if (on_main_thread()) return main_comes_to_ps();
  return own != nullptr ? own->comes_to_ps(own_cpu_ns()) : instant();
}

bool counts() { return program_has_threads() && phase() == Phase::running && computing_is_measured(); }

struct Given {
  ThreadStart start;
  std::uint64_t from_ps;
};

void enter_list(std::uint64_t from_ps) {
  for (Worker& each : workers) {
    pid_t nobody = 0;
    if (!each.thread.compare_exchange_strong(nobody, thread_id())) continue;
    raise_to(places_used, static_cast<std::size_t>(&each - workers) + 1);
    own = &each;
    own->calls = counts() ? quiet_calls() : not_quiet;
    return own->is_at(from_ps, own_cpu_ns());
  }
}

void leave_list(void*) {
  if (own == nullptr) return;
  note_release(reinterpret_cast<void*>(pthread_self()));
  own->waits.store(false);  // it may have been cancelled
  std::exchange(own, nullptr)->thread.store(0);
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
  auto* const given = static_cast<Given*>(argument);
  const auto [start, from_ps] = *given;
  free(given);
  enter_list(from_ps);
  pthread_setspecific(key_of_end(), &workers);
  return start.function(start.argument);
}

}  // namespace

ThreadStart known_thread(void* (*function)(void*), void* argument) {
  auto* const given = static_cast<Given*>(malloc(sizeof(Given)));
  if (given == nullptr) return {function, argument};
  const std::uint64_t clock_ns = computing_clock_ns();
  *given = {{function, argument}, counts() ? own_instant_ps() : 0};
  leave_out_since(clock_ns);
  key_of_end();  // made by one thread
  return {begin_thread, given};
}

void forget_thread(const ThreadStart& start) {
  if (start.function == begin_thread) free(start.argument);
}

void hold_others_back() {
  if (!counts() || inside_mpi()) return;
  const std::uint64_t now = instant();
  for (std::size_t at = 0; at < places_used.load(); ++at) {
    Worker& worker = workers[at];
    const pid_t thread = worker.thread.load();
    if (thread == 0 || &worker == own || worker.waits.load()) continue;
    const std::uint64_t cpu_ns = thread_cpu_ns(thread);
    if (worker.comes_to_ps(cpu_ns) > now) worker.is_at(std::max(worker.at_ps.load(), now), cpu_ns);
  }
}

void note_gap() {
  if (own == nullptr || !counts()) return;
  own->calls = quiet_calls();
  own->is_at(instant(), own_cpu_ns() + free_behind_call_ns);
}

std::uint64_t worker_clock_ns() { return own != nullptr && counts() ? own_cpu_ns() : 0; }

void leave_worker_out_since(std::uint64_t clock_ns) {
  if (clock_ns != 0) own->cpu_ns.fetch_add(own_cpu_ns() - clock_ns);
}

std::uint64_t computed_up_to_ps() {
  const bool is_quiet = own != nullptr && counts() && own->calls != not_quiet && own->calls == quiet_calls();
  return is_quiet ? own->comes_to_ps(own_cpu_ns()) : 0;
}

void note_release(const void* object) {
  if (counts()) raise_to(released_at(object), own_instant_ps());
}

// A thread that waited before the run began is to go on within it.
WaitFor::WaitFor(const void* object) : object_(own != nullptr || (counts() && is_in_gap()) ? object : nullptr) {
  if (object_ == nullptr || own == nullptr) return;
  if (counts()) began_ps_ = own->comes_to_ps(own_cpu_ns());
  own->waits.store(true);
}

WaitFor::~WaitFor() {
  if (object_ == nullptr) return;
  const std::uint64_t released = released_at(object_).load();
  if (own != nullptr) {
    if (counts()) own->is_at(std::max(began_ps_, released), own_cpu_ns());
    own->waits.store(false);
  } else if (released > instant() && counts()) {
    main_goes_on_at(released);
  }
}

const void* for_main(const void* object) { return on_main_thread() ? object : nullptr; }

}  // namespace dryfly::preload
