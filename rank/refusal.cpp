#include "rank/refusal.hpp"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rank/kernel_call.hpp"

namespace dryfly::rank {

namespace {

// Whoever speaks keeps its name until the others have found it taken.
constexpr timespec until_asked{0, 300'000'000};
constexpr timespec until_ended{5, 0};

void nap(const timespec& time) {
  const long arguments[6] = {CLOCK_MONOTONIC, 0, reinterpret_cast<long>(&time)};
  kernel_call(SYS_clock_nanosleep, arguments);
}

}  // namespace

bool speaks_for_run(const char* about) {
  const char* channel = getenv("DRYFLY_CHANNEL");
  if (channel == nullptr || *channel == 0) return true;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s.%s", channel, about);
  const int name = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (name < 0 || length >= static_cast<int>(sizeof address.sun_path) - 1) return true;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  if (bind(name, reinterpret_cast<sockaddr*>(&address), bytes) == 0) return true;
  close(name);
  return false;
}

void wait_for_others_to_ask() { nap(until_asked); }

void end_refused(bool has_spoken) {
  nap(has_spoken ? until_asked : until_ended);
  _exit(exit_of_refusal);
}

}  // namespace dryfly::rank
