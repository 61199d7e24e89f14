#include "preload/mpi/expected_mpi.hpp"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>

#include "preload/mpi/mpi_library.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

// The job ends with the first rank that does. Whoever speaks keeps its name until the others have found it taken.
constexpr std::uint64_t until_asked_ns = 300'000'000;
constexpr std::uint64_t until_ended_ns = 5'000'000'000;

// All ranks of a run come here at once, and one is to speak: who gets the name.
bool speaks_for_all() {
  const char* channel = getenv("DRYFLY_CHANNEL");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s.mpi", channel ? channel : "");
  const int name = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
  return name < 0 || length >= static_cast<int>(sizeof address.sun_path) - 1 ||
         bind(name, reinterpret_cast<sockaddr*>(&address), bytes) == 0;
}

// Ends the run; the sentence has been said.
[[noreturn]] void end_all(bool spoke) {
  if (spoke) fflush(stderr);
  real::nap_ns(spoke ? until_asked_ns : until_ended_ns);
  _exit(2);
}

}  // namespace

void require_expected_mpi() {
  const char* expected = getenv("DRYFLY_MPI");
  const char* library = expected != nullptr ? strchr(expected, ' ') : nullptr;
  if (library == nullptr) return;
  const bool wants_open_mpi = strncmp(expected, "openmpi", 7) == 0;
  const bool is_open_mpi = abi() == Abi::open_mpi;
  if (wants_open_mpi == is_open_mpi) return;
  const bool speaks = speaks_for_all();
  if (speaks) {
    fprintf(stderr, "dryfly: %s uses %s and cannot run on %s: say --mpi %s\n", program_invocation_name,
            is_open_mpi ? "Open MPI" : "MPICH", library + 1, is_open_mpi ? "openmpi" : "mpich");
  }
  end_all(speaks);
}

void end_for_progress_thread() {
  const bool speaks = speaks_for_all();
  if (speaks) {
    fprintf(stderr,
            "dryfly: the MPI library of %s starts a progress thread, whose polls would move virtual time as this "
            "computer happens to run them: leave out MPIR_CVAR_ASYNC_PROGRESS and MPIX_Start_progress_thread\n",
            program_invocation_name);
  }
  end_all(speaks);
}

}  // namespace dryfly::preload
