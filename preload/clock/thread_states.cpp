#include "preload/clock/thread_states.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

// The state letter of a thread in /proc, 0 if it is gone.
char thread_state(const char* id) {
  char path[64];
  char text[256];
  snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", id);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = 0;
  const char* name_end = strrchr(text, ')');  // the name may itself hold brackets
  return name_end != nullptr && name_end[1] == ' ' ? name_end[2] : '\0';
}

}  // namespace

pid_t running_thread() {
  if (__libc_single_threaded) return 0;
  DIR* threads = opendir("/proc/self/task");
  if (threads == nullptr) return 0;
  pid_t found = 0;
  while (const dirent* entry = readdir(threads)) {
    const auto id = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    if (id == 0 || id == thread_id()) continue;
    const char state = thread_state(entry->d_name);
    if (state == 'R' || state == 'D') {
      found = id;
      break;
    }
  }
  closedir(threads);
  return found;
}

std::uint64_t thread_cpu_ns(pid_t id) {
  constexpr unsigned of_one_thread = 6;  // the kernel's number for the CPU clock of a thread, CPUCLOCK_SCHED
  timespec used{};
  const auto clock = static_cast<clockid_t>(~static_cast<unsigned>(id) << 3 | of_one_thread);
  if (syscall(SYS_clock_gettime, clock, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(used.tv_nsec);
}

}  // namespace dryfly::preload
