#include "preload/mpi/missed_mpi.hpp"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "preload/mpi/mpi_library.hpp"
#include "preload/rank.hpp"
#include "rank/refusal.hpp"

namespace dryfly::preload {

namespace {

struct Family {
  const char* word;  // of --mpi
  const char* name;
};
constexpr Family open_mpi{"openmpi", "Open MPI"};
constexpr Family mpich{"mpich", "MPICH"};

// Of a library of MPI or a part of one (libmpi_mpifh.so.40, libmpifort.so.12); null where its name does not say.
const Family* family_of(const char* name) {
  if (strncmp(name, "libmpi", 6) != 0) return nullptr;
  if (strncmp(name, "libmpi_abi.so", 13) == 0) return &mpich;
  const char* const release = strstr(name, ".so.");
  if (release == nullptr) return nullptr;
  const auto is = [&](const char* number) {
    return strncmp(release + 4, number, 2) == 0 && (release[6] == 0 || release[6] == '.');
  };
  return is("40") ? &open_mpi : is("12") ? &mpich : nullptr;
}

struct Missed {
  char name[64];
  const Family* family;
  pid_t process;
};
Missed missed;  // the first
std::atomic<bool> is_noted{false};

void tell_at_exit(int status, void*) {
  const char* const expected = getenv("DRYFLY_MPI");
  if (status == 0 || missed.process != getpid() || expected == nullptr || mpi_is_mapped()) return;
  const char* const library = strchr(expected, ' ');
  if (library == nullptr || !rank::speaks_for_run("missed")) return;
  fflush(nullptr);
  dprintf(STDERR_FILENO,
          "dryfly: %s has asked for %s, which is %s's, and found no MPI: this run is on %s, so say --mpi %s\n",
          program_invocation_name, missed.name, missed.family->name, library + 1, missed.family->word);
  rank::wait_for_others_to_ask();
}

// The first `length` letters of a path.
void note(const char* path, std::size_t length) {
  const char* const expected = belongs_to_run() ? getenv("DRYFLY_MPI") : nullptr;
  if (expected == nullptr) return;
  const auto* const slash = static_cast<const char*>(memrchr(path, '/', length));
  const char* const base = slash != nullptr ? slash + 1 : path;
  char name[sizeof missed.name];
  snprintf(name, sizeof name, "%.*s", static_cast<int>(length - static_cast<std::size_t>(base - path)), base);
  const Family* const family = family_of(name);
  if (family == nullptr || (strncmp(expected, "openmpi", 7) == 0) == (family == &open_mpi) || is_noted.exchange(true)) {
    return;
  }
  memcpy(missed.name, name, sizeof name);
  missed.family = family;
  missed.process = getpid();
  on_exit(tell_at_exit, nullptr);
}

}  // namespace

void note_asked_for(const char* file) {
  if (file != nullptr) note(file, strlen(file));
}

void note_error(const char* text) {
  const char* const end = text != nullptr ? strstr(text, ": cannot open shared object file") : nullptr;
  if (end != nullptr) note(text, static_cast<std::size_t>(end - text));
}

}  // namespace dryfly::preload
