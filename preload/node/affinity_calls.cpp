#include "preload/node/affinity_calls.hpp"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/clock/compute.hpp"
#include "preload/clock/timed_wait.hpp"
#include "preload/export.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"
#include "rank/kernel_call.hpp"

namespace dryfly::preload {

namespace {

constexpr std::size_t word_bytes = sizeof(std::uint64_t);

long fail(int error) {
  errno = error;
  return -1;
}

// What the kernel of such a node has room for.
std::size_t mask_bytes() { return (node_shape()->processors() + 63) / 64 * word_bytes; }

// ESRCH where there is none such, EPERM for another process's.
int refusal_of(std::int32_t thread) {
  if (is_own_thread(thread)) return 0;
  const long arguments[6] = {thread, 0, 0, 0, 0, 0};
  return rank::kernel_call(SYS_kill, arguments) == 0 ? EPERM : ESRCH;
}

pthread_t main_thread;
__attribute__((constructor)) void note_main_thread() { main_thread = pthread_self(); }

// -1: another thread than this and the main one.
std::int32_t number_of(pthread_t thread) {
  if (pthread_equal(thread, pthread_self())) return 0;
  return pthread_equal(thread, main_thread) ? getpid() : -1;
}

// What was told of this computer, last; none: nothing was.
Processors told_instead;

Processors read_mask(std::size_t bytes, const void* mask) {
  Processors read;
  memcpy(read.words, mask, bytes < sizeof read.words ? bytes : sizeof read.words);
  return read;
}

long bind_thread(std::int32_t thread, std::size_t bytes, const unsigned char* mask) {
  if (const int error = refusal_of(thread)) return fail(error);
  if (mask == nullptr) return fail(EFAULT);
  Processors wanted = read_mask(bytes, mask);
  // Whoever saves what it was told, binds itself for a moment and restores that means to be where it was. One that is
  // not bound has nothing to restore.
  const bool is_bound_now = !(processors_of(thread) == node_shape()->allowed);
  if (is_bound_now && told_instead.any() && wanted == told_instead) wanted = node_shape()->allowed;
  return bind_to(thread, wanted) ? 0 : fail(EINVAL);
}

// What such a call of the kernel takes, about, and no less than the way of a command to the conductor.
constexpr std::uint64_t call_ps = 1'000'000;

}  // namespace

// A rank learns at a gate with how many it shares its core, and by what it knew at its last one its computing takes
// time. So what it has computed counts by where it was, and the call that binds it elsewhere has a gate of its own.
long set_affinity(std::int32_t thread, std::size_t bytes, const unsigned char* mask, const void* caller) {
  if (phase() != Phase::running || !on_main_thread() || !waits_virtually(caller)) {
    return bind_thread(thread, bytes, mask);
  }
  observe_compute(Observation::within_gap);
  const Processors before = processors_of(0);
  const long result = bind_thread(thread, bytes, mask);
  if (processors_of(0) == before) return result;
  const std::uint64_t clock_ns = computing_clock_ns();
  advance(call_ps);
  dryfly_self.gate(wire::GateKind::poll);
  leave_out_since(clock_ns);
  return result;
}

long get_affinity(std::int32_t thread, std::size_t bytes, unsigned char* mask) {
  if (const int error = refusal_of(thread); error == ESRCH) return fail(error);
  if (bytes < mask_bytes() || bytes % word_bytes != 0) return fail(EINVAL);
  const Processors set = processors_of(thread);
  memcpy(mask, set.words, mask_bytes());
  return static_cast<long>(mask_bytes());
}

long get_processor(std::uint32_t* processor, std::uint32_t* domain) {
  const std::uint32_t here = current_processor();
  if (processor != nullptr) *processor = here;
  if (domain != nullptr) *domain = node_shape()->domain_of(here);
  return 0;
}

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int sched_setaffinity(pid_t thread, size_t bytes, const cpu_set_t* mask) noexcept {
  if (node_shape() == nullptr) return real::sched_setaffinity()(thread, bytes, mask);
  return static_cast<int>(
      set_affinity(thread, bytes, reinterpret_cast<const unsigned char*>(mask), __builtin_return_address(0)));
}

DRYFLY_EXPORT int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t* mask) noexcept {
  if (node_shape() == nullptr) return real::sched_getaffinity()(thread, bytes, mask);
  const long written = get_affinity(thread, bytes, reinterpret_cast<unsigned char*>(mask));
  if (written < 0) return -1;
  memset(reinterpret_cast<char*>(mask) + written, 0, bytes - static_cast<std::size_t>(written));
  return 0;
}

DRYFLY_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* mask) noexcept {
  if (node_shape() == nullptr) return real::pthread_setaffinity_np()(thread, bytes, mask);
  const std::int32_t number = number_of(thread);
  if (number < 0) return 0;
  const auto* const set = reinterpret_cast<const unsigned char*>(mask);
  return set_affinity(number, bytes, set, __builtin_return_address(0)) == 0 ? 0 : errno;
}

// OpenMP starts as many threads as it finds processors here. Where nobody has bound the rank that is this computer's
// number, as it was before there were bindings: on a node of 208 it would be 208 in each rank.
DRYFLY_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* mask) noexcept {
  if (node_shape() == nullptr) return real::pthread_getaffinity_np()(thread, bytes, mask);
  if (!is_bound()) {
    const int error = real::pthread_getaffinity_np()(thread, bytes, mask);
    if (error == 0) told_instead = read_mask(bytes, mask);
    return error;
  }
  const std::int32_t number = number_of(thread);
  return sched_getaffinity(number < 0 ? getpid() : number, bytes, mask) == 0 ? 0 : errno;
}

// A thread that is created with it would be bound here, and on this computer.
DRYFLY_EXPORT int pthread_attr_setaffinity_np(pthread_attr_t* attributes, size_t bytes,
                                              const cpu_set_t* mask) noexcept {
  if (node_shape() == nullptr) return real::pthread_attr_setaffinity_np()(attributes, bytes, mask);
  return 0;
}

DRYFLY_EXPORT int sched_getcpu() noexcept {
  return node_shape() != nullptr ? static_cast<int>(current_processor()) : real::sched_getcpu()();
}

DRYFLY_EXPORT int getcpu(unsigned* processor, unsigned* domain) noexcept {
  if (node_shape() != nullptr) return static_cast<int>(get_processor(processor, domain));
  const long arguments[6] = {reinterpret_cast<long>(processor), reinterpret_cast<long>(domain), 0, 0, 0, 0};
  return static_cast<int>(dryfly::rank::kernel_call(SYS_getcpu, arguments));
}
