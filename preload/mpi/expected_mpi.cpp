#include "preload/mpi/expected_mpi.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "preload/mpi/mapped_mpis.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"
#include "rank/refusal.hpp"

namespace dryfly::preload {

namespace {

bool are_in_one_folder(const char* one, const char* other) {
  char a[PATH_MAX];
  char b[PATH_MAX];
  if (realpath(one, a) == nullptr || realpath(other, b) == nullptr) return false;
  const auto length = strrchr(a, '/') - a;
  return strrchr(b, '/') - b == length && strncmp(a, b, static_cast<std::size_t>(length)) == 0;
}

// The first process of a run that has something to say about it says so. True: this one.
bool say(const char* about, const char* format, va_list values) {
  const bool speaks = rank::speaks_for_run(about);
  if (speaks) {
    vfprintf(stderr, format, values);
    fflush(stderr);
  }
  return speaks;
}

// Says the sentence, and ends the run.
[[noreturn]] __attribute__((format(printf, 1, 2))) void end_all(const char* format, ...) {
  va_list values;
  va_start(values, format);
  const bool has_spoken = say("mpi", format, values);
  va_end(values);
  rank::end_refused(has_spoken);
}

__attribute__((format(printf, 2, 3))) bool tell(const char* about, const char* format, ...) {
  va_list values;
  va_start(values, format);
  const bool has_spoken = say(about, format, values);
  va_end(values);
  return has_spoken;
}

// `name`: of the run's library, which is not of this family. Where nobody has said which one, dryfly run is told, and
// starts again with it (OtherFamily); DRYFLY_OTHER_MPI is the file for that, which the first rank makes.
[[noreturn]] void end_for_family(bool is_open_mpi, const char* name) {
  const char* const title = is_open_mpi ? "Open MPI" : "MPICH";
  const char* const word = is_open_mpi ? "openmpi" : "mpich";
  const char* const path = getenv("DRYFLY_OTHER_MPI");
  const int file = path != nullptr ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
  if (file >= 0) dprintf(file, "%s %s uses %s and cannot run on %s", word, program_invocation_name, title, name);
  if (file >= 0 || (path != nullptr && errno == EEXIST)) _exit(rank::exit_of_refusal);
  end_all("dryfly: %s uses %s and cannot run on %s: say --mpi %s\n", program_invocation_name, title, name, word);
}

// A library of the other family than the run's, and beside it at most one that was asked for as libmpi.so.
bool has_only_other_family(const MappedMpi* mpis, int count, bool wants_open_mpi) {
  bool has_other = false;
  for (int i = 0; i < count; ++i) {
    if (is_open_mpi(mpis[i].path) != wants_open_mpi) {
      has_other = true;
    } else if (!is_plain_name(mpis[i])) {
      return false;
    }
  }
  return has_other;
}

// The name of the run's library; null outside a run.
const char* runs_library() {
  const char* const expected = getenv("DRYFLY_MPI");
  const char* const blank = expected != nullptr ? strchr(expected, ' ') : nullptr;
  return blank != nullptr ? blank + 1 : nullptr;
}

[[noreturn]] void end_for_two(const char* what, const MappedMpi (&two)[2]) {
  end_all("dryfly: %s has two %s in one process: %s (asked for by %s) and %s (asked for by %s)\n",
          program_invocation_name, what, two[0].path, two[0].by, two[1].path, two[1].by);
}

// Within a run, whose library has this name.
void refuse_other_mpis(const char* name) {
  const bool wants_open_mpi = strncmp(getenv("DRYFLY_MPI"), "openmpi", 7) == 0;
  MappedMpi mpis[2];
  const int count = mapped_mpis(mpis, 2);
  if (has_only_other_family(mpis, count, wants_open_mpi)) end_for_family(!wants_open_mpi, name);
  if (count == 2) end_for_two("MPIs", mpis);
  if (mapped_open_pals(mpis, 2) == 2) end_for_two("of Open MPI's libopen-pal", mpis);
}

// `name`: of the run's library. Another one may stand in front of it by a RPATH, or a LD_LIBRARY_PATH that a script
// sets.
void require_file_of(const char* name) {
  const char* const own = getenv("DRYFLY_LIBMPI");
  MappedMpi mpi{};
  if (own == nullptr || mapped_mpis(&mpi, 1) == 0 || are_in_one_folder(mpi.path, own)) return;
  end_all(
      "dryfly: %s has loaded %s (asked for by %s) in place of %s, by an RPATH or a LD_LIBRARY_PATH of a script: "
      "leave that out, or make it a library of dryfly's (dryfly mpi add NAME=PREFIX, and --mpi NAME)\n",
      program_invocation_name, mpi.path, mpi.by, name);
}

}  // namespace

void refuse_launcher() {
  const char* const name = program_invocation_short_name;
  const bool launches = strncmp(name, "mpirun", 6) == 0 || strncmp(name, "mpiexec", 7) == 0 ||
                        strcmp(name, "orterun") == 0 || strcmp(name, "prterun") == 0 || strcmp(name, "srun") == 0;
  if (!launches || getenv("DRYFLY_RANK") == nullptr) return;
  end_all(
      "dryfly: a script starts %s, and each rank would start a job of its own: let it start the program itself, "
      "and say how many ranks there are with dryfly run -n\n",
      name);
}

void refuse_preloaded_mpi() {
  const char* const name = runs_library();
  const char* const preloads = getenv("LD_PRELOAD");
  const void* const first = real::own_dlsym()(RTLD_DEFAULT, "PMPI_Init");
  Dl_info found{};
  Dl_info own{};
  if (name == nullptr || preloads == nullptr || first == nullptr || dladdr(first, &found) == 0) return;
  const bool is_own =
      dladdr(reinterpret_cast<const void*>(&refuse_launcher), &own) == 0 || own.dli_fbase == found.dli_fbase;
  const char* const slash = strrchr(found.dli_fname, '/');
  if (is_own || strstr(preloads, slash != nullptr ? slash + 1 : found.dli_fname) == nullptr) return;
  end_all(
      "dryfly: %s has %s in LD_PRELOAD, an MPI library in front of %s, on which the ranks run: leave it out there; "
      "accepted are tools and other libraries, and --mpi chooses the MPI\n",
      program_invocation_name, found.dli_fname, name);
}

void require_expected_mpi() {
  const char* const name = runs_library();
  if (name == nullptr) return;
  refuse_other_mpis(name);
  require_file_of(name);
}

void refuse_second_mpi(const void* function) {
  const char* const name = belongs_to_run() ? runs_library() : nullptr;
  if (name == nullptr || !is_of_an_mpi(function)) return;
  refuse_other_mpis(name);
  require_file_of(name);
}

void end_for_other_network() {
  end_all(
      "dryfly: MPI of %s has begun on another network than the simulated one, where it would run in real time: "
      "leave out settings that choose one (OMPI_MCA_..., FI_PROVIDER, MPIR_CVAR_...)\n",
      program_invocation_name);
}

void refuse_old_split_type(long type) {
  constexpr int neighborhood = 4;
  if (static_cast<int>(type) != neighborhood || abi() != Abi::mpich || getenv("DRYFLY_OLD_MPICH") == nullptr) return;
  end_all(
      "dryfly: %s calls MPI_Comm_split_type with 4, which is MPIX_COMM_TYPE_NEIGHBORHOOD in the MPICH before 4.2 "
      "that it was built with and MPI_COMM_TYPE_RESOURCE_GUIDED in the library that it runs on: build it anew\n",
      program_invocation_name);
}

void refuse_shared_window() {
  const char* const components = getenv("OMPI_MCA_osc");
  if (abi() != Abi::open_mpi || components == nullptr || strstr(components, "sm") != nullptr) return;
  end_all(
      "dryfly: %s calls MPI_Win_allocate_shared, for which Open MPI lacks its component sm (OMPI_MCA_osc=%s): "
      "say --on-node shared\n",
      program_invocation_name, components);
}

void refuse_spawn(const char* call, long communicator) {
  static std::atomic<bool> told{false};
  const bool ends = ends_on_error(communicator);
  if (told.exchange(true) && !ends) return;
  const bool has_spoken = tell(
      "spawn",
      "dryfly: %s calls MPI_%s, which fails, because a run has the ranks that it began with: start all of them at once "
      "(dryfly run -n), and let each take its part by its rank in MPI_COMM_WORLD\n",
      program_invocation_name, call);
  if (ends) rank::end_refused(has_spoken);
}

void refuse_group_over_linkx(unsigned long members) {
  if (members < 2 || getenv("DRYFLY_LINKED") == nullptr) return;
  end_all(
      "dryfly: %s makes a communicator from a group (MPI_Comm_create_from_group, as sessions do), which Open MPI does "
      "not come out of over LINKx: leave out --provider linkx\n",
      program_invocation_name);
}

void end_for_progress_thread() {
  end_all(
      "dryfly: the MPI library of %s starts a progress thread, whose polls would move virtual time as this "
      "computer happens to run them: leave out MPIR_CVAR_ASYNC_PROGRESS and MPIX_Start_progress_thread\n",
      program_invocation_name);
}

}  // namespace dryfly::preload
