#include "preload/mpi/mpi_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "preload/mpi/mapped_mpis.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

constexpr char variable_of_open_mpi[] = "ompi_mpi_comm_world";

struct Found {
  char path[1024];
};

int look_for_mpi(dl_phdr_info* object, std::size_t, void* data) {
  const char* path = object->dlpi_name;
  if (path == nullptr || !is_mpi_library(path) || strlen(path) >= sizeof(Found::path)) return 0;
  strcpy(static_cast<Found*>(data)->path, path);
  return 1;
}

// The handle of the library. RTLD_NEXT would miss one that was loaded with RTLD_LOCAL, as Python loads modules.
void* library() {
  static std::atomic<void*> handle{nullptr};
  void* known = handle.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  Found found{};
  if (dl_iterate_phdr(look_for_mpi, &found) == 0) return nullptr;
  known = real::dlopen()(found.path, RTLD_LAZY | RTLD_NOLOAD);
  handle.store(known, std::memory_order_release);
  return known;
}

template <typename Function>
Function* pmpi_function(std::atomic<void*>& cache, const char* name) {
  void* known = cache.load(std::memory_order_relaxed);
  if (known == nullptr) {
    known = find_pmpi(name);
    cache.store(known, std::memory_order_relaxed);
  }
  return reinterpret_cast<Function*>(known);
}

// Between "MPI" and a name of ours: "Send" is MPI_Send, "X_Comm_agree" is MPIX_Comm_agree.
const char* joint(const char* name) { return name[0] == 'X' && name[1] == '_' ? "" : "_"; }

// A program that is not position-independent has a copy of the library's variable, and then both use that.
// Asks a PMPI function of the form (handle, int* result).
int ask(std::atomic<void*>& cache, const char* name, long handle) {
  int answer = 0;
  const int status = pmpi_function<int(long, int*)>(cache, name)(handle, &answer);
  return status == 0 ? answer : 0;
}

}  // namespace

bool mpi_is_mapped() {
  Found found{};
  return dl_iterate_phdr(look_for_mpi, &found) != 0;
}

Abi abi() {
  static std::atomic<int> known{-1};
  int answer = known.load(std::memory_order_relaxed);
  if (answer < 0) {
    Found found{};
    dl_iterate_phdr(look_for_mpi, &found);
    answer = static_cast<int>(Abi::mpich);
    if (strstr(found.path, "libmpi_abi.so") != nullptr) answer = static_cast<int>(Abi::standard);
    if (library() != nullptr && real::symbol(library(), variable_of_open_mpi) != nullptr) {
      answer = static_cast<int>(Abi::open_mpi);
    }
    known.store(answer, std::memory_order_relaxed);
  }
  return static_cast<Abi>(answer);
}

bool is_open_mpi(const char* path) {
  void* const mapped = real::dlopen()(path, RTLD_LAZY | RTLD_NOLOAD);
  return mapped != nullptr && real::symbol(mapped, variable_of_open_mpi) != nullptr;
}

void* find_pmpi(const char* name) {
  char full[64];
  snprintf(full, sizeof full, "PMPI%s%s", joint(name), name);
  void* found = library() != nullptr ? real::symbol(library(), full) : nullptr;
  if (found == nullptr) {
    fprintf(stderr, "dryfly: the program calls MPI%s%s, which its MPI library does not have\n", joint(name), name);
    abort();
  }
  return found;
}

bool is_in_library(const void* address) {
  Dl_info asked{};
  Dl_info own{};
  return library() != nullptr && dladdr(address, &asked) != 0 &&
         dladdr(real::symbol(library(), "PMPI_Recv"), &own) != 0 && asked.dli_fbase == own.dli_fbase;
}

void* find_in_library(const char* name) { return library() != nullptr ? real::symbol(library(), name) : nullptr; }

void* Tool::look(const char* name) {
  char full[64];
  snprintf(full, sizeof full, "MPI%s%s", joint(name), name);
  void* next = dlsym(RTLD_NEXT, full);
  // The same object, not the same address: a library may define MPI_X and PMPI_X each for itself, and in several parts.
  // A second MPI is none: MPI_Init refuses that.
  Dl_info behind{};
  Dl_info own{};
  void* pmpi = find_pmpi(name);
  const bool tool = next != nullptr && dladdr(next, &behind) != 0 && dladdr(pmpi, &own) != 0 &&
                    behind.dli_fbase != own.dli_fbase && next != find_in_library(full) &&
                    !is_mpi_library(behind.dli_fname);
  // Two threads may both look; they find the same.
  if (tool) function_.store(next, std::memory_order_relaxed);
  stand_.store(tool ? Stand::tool : Stand::nobody, std::memory_order_release);
  return tool ? next : nullptr;
}

void end_for_bypass(const char* name, void* tool) {
  Dl_info found{};
  const bool known = dladdr(tool, &found) != 0 && found.dli_fname != nullptr;
  fprintf(stderr,
          "dryfly: %s defines MPI_%s and calls the MPI library past dryfly, which needs to see it; put it into "
          "LD_PRELOAD, or let it call PMPI_%s by its name\n",
          known ? found.dli_fname : "a tool", name, name);
  _exit(1);
}

const Constants& constants() {
  static constexpr Constants mpich{0x44000000, -1, -2, -1, 3, 2, 0x4000000, 0x1c000000};
  static constexpr Constants standard{0x101, 1, -1, -2, 4096, 2048, 0x100, 0x130};
  static Constants open_mpi{0, 1, -1, -1, 3, 2, 0, 0};  // handles are addresses
  switch (abi()) {
    case Abi::standard:
      return standard;
    case Abi::open_mpi:
      open_mpi.comm_world = address_of(variable_of_open_mpi);
      open_mpi.comm_null = address_of("ompi_mpi_comm_null");
      open_mpi.info_null = address_of("ompi_mpi_info_null");
      return open_mpi;
    case Abi::mpich:
      break;
  }
  return mpich;
}

long address_of(const char* variable) {
  void* found = dlsym(RTLD_DEFAULT, variable);
  return reinterpret_cast<long>(found != nullptr ? found : real::symbol(library(), variable));
}

long handle(long word) { return abi() == Abi::mpich ? static_cast<long>(static_cast<std::uint32_t>(word)) : word; }

long handle_at(long address) {
  if (abi() == Abi::mpich) return handle(*reinterpret_cast<const int*>(address));
  return *reinterpret_cast<const long*>(address);
}

std::int64_t type_size(long datatype) {
  static std::atomic<void*> function{nullptr};
  const int size = ask(function, "Type_size", datatype);
  return size > 0 ? size : 0;
}

std::int64_t comm_size(long communicator) {
  static std::atomic<void*> function{nullptr};
  return ask(function, "Comm_size", communicator);
}

bool is_intercommunicator(long communicator) {
  static std::atomic<void*> function{nullptr};
  return ask(function, "Comm_test_inter", communicator) != 0;
}

bool ends_on_error(long communicator) {
  long set[2] = {};
  using GetHandler = int (*)(long, long*);
  const auto get = reinterpret_cast<GetHandler>(find_in_library("PMPI_Comm_get_errhandler"));
  if (get == nullptr || get(communicator, set) != 0) return false;
  const long handler = handle_at(reinterpret_cast<long>(set));
  switch (abi()) {
    case Abi::standard:
      return handler == 0x141 || handler == 0x142;  // MPI_ERRORS_ARE_FATAL, MPI_ERRORS_ABORT
    case Abi::open_mpi:
      return handler == address_of("ompi_mpi_errors_are_fatal") || handler == address_of("ompi_mpi_errors_abort");
    case Abi::mpich:
      break;
  }
  return handler == 0x54000000 || handler == 0x54000003;
}

}  // namespace dryfly::preload
