// A program that opens the MPI library itself and asks it for its functions (dlopen, dlsym; Python's ctypes, Julia's
// ccall) would get past the wrappers. So for the library's own function it is given the wrapper of that name, and a
// path to a library of the system's opens the run's. Left out: libraries in a name space of their own (dlmopen).
#include <dlfcn.h>
#include <string.h>

#include "preload/export.hpp"
#include "preload/mpi/expected_mpi.hpp"
#include "preload/mpi/mapped_mpis.hpp"
#include "preload/mpi/missed_mpi.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

bool is_mpi_name(const char* name) {
  if (name[0] == 'P') ++name;
  return strncmp(name, "MPI_", 4) == 0 || strncmp(name, "MPIX_", 5) == 0;
}

void* wrapper_of(const char* name) {
  static void* const self = [] {
    Dl_info own{};
    return dladdr(reinterpret_cast<void*>(&is_mpi_name), &own) != 0
               ? real::dlopen()(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
               : nullptr;
  }();
  return self != nullptr ? real::symbol(self, name) : nullptr;
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

// The C library looks who has called it, so it is jumped to.
DRYFLY_EXPORT void* dlopen(const char* file, int mode) noexcept {
  note_asked_for(file);
  return real::dlopen()(library_to_open(file, __builtin_return_address(0)), mode);
}
DRYFLY_EXPORT void* dlsym(void* handle, const char* name) noexcept {
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || !is_mpi_name(name)) return real::own_dlsym()(handle, name);
  void* const found = real::symbol(handle, name);
  if (found != nullptr && !is_in_library(found)) refuse_second_mpi(found);
  void* const wrapper = found != nullptr && is_in_library(found) ? wrapper_of(name) : nullptr;
  return wrapper != nullptr ? wrapper : found;
}

DRYFLY_EXPORT char* dlerror() noexcept {
  char* const text = real::dlerror()();
  note_error(text);
  return text;
}
