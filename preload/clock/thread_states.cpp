// A thread that waits asks often, so the files of /proc stay open, and the threads are listed again only when one has
// been made, or after many questions: one that was made past the C library is found then.
#include "preload/clock/thread_states.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <utility>

#include "preload/clock/herald.hpp"
#include "preload/mpi/spin_lock.hpp"
#include "preload/rank.hpp"
#include "rank/kernel_call.hpp"

namespace dryfly::preload {

namespace {

struct Thread {
  pid_t id = 0;
  int file = -1;  // its stat
};

constexpr std::uint32_t questions_max = 256;
constinit SpinLock lock;
Thread known[128];  // further ones are not seen
std::uint32_t questions = 0;
std::atomic<bool> has_new{true};

// A thread that the program cancels is not to end here, with the lock.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

Thread taken_over(pid_t id) {
  for (Thread& each : known) {
    if (each.id == id) return std::exchange(each, {});
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", static_cast<int>(id));
  return {id, open(path, O_RDONLY | O_CLOEXEC)};
}

void list_threads() {
  has_new.store(false);
  questions = 0;
  Thread found[std::size(known)];
  std::size_t next = 0;
  if (DIR* const threads = opendir("/proc/self/task"); threads != nullptr) {
    while (const dirent* entry = readdir(threads)) {
      const auto id = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
      if (id != 0 && next < std::size(found)) found[next++] = taken_over(id);
    }
    closedir(threads);
  }
  for (const Thread& gone : known) {
    if (gone.file >= 0) close(gone.file);
  }
  std::ranges::copy(found, known);
}

bool runs(const Thread& thread) {
  char text[256];
  const ssize_t length = pread(thread.file, text, sizeof text - 1, 0);
  if (length <= 0) return false;
  text[length] = 0;
  const char* name_end = strrchr(text, ')');  // the name may itself hold brackets
  return name_end != nullptr && name_end[1] == ' ' && (name_end[2] == 'R' || name_end[2] == 'D');
}

}  // namespace

pid_t running_thread() {
  return running_thread([](pid_t, std::uint64_t) { return false; }, 0);
}

pid_t running_thread(bool (*left_out)(pid_t id, std::uint64_t argument), std::uint64_t argument) {
  if (__libc_single_threaded) return 0;
  const NoCancellation whole;
  const SpinLock::Hold hold(lock);
  if (has_new.load() || ++questions > questions_max) list_threads();
  for (const Thread& each : known) {
    if (each.id == 0 || each.id == thread_id() || each.id == herald_thread() || left_out(each.id, argument)) continue;
    if (runs(each)) return each.id;
  }
  return 0;
}

void note_new_thread() { has_new.store(true); }

std::uint64_t thread_cpu_ns(pid_t id) {
  constexpr unsigned of_one_thread = 6;  // the kernel's number for the CPU clock of a thread, CPUCLOCK_SCHED
  timespec used{};
  const auto clock = static_cast<clockid_t>(~static_cast<unsigned>(id) << 3 | of_one_thread);
  if (rank::bare_kernel_call(SYS_clock_gettime, {clock, reinterpret_cast<long>(&used), 0, 0, 0, 0}) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(used.tv_nsec);
}

}  // namespace dryfly::preload
