// The MPI library of this process: which one it is, what its constants are, and where its PMPI_ functions lie. Written
// against no mpi.h, because one build of this file serves MPICH, the MPI-5 standard ABI and Open MPI. All arguments of
// MPI functions are whole machine words or narrower, in registers or on the stack, on x86-64 and aarch64 alike; so a
// call is forwarded as words without knowing what they mean.
#pragma once

#include <atomic>
#include <cstdint>

namespace dryfly::preload {

enum class Abi { mpich, standard, open_mpi };

// Is an MPI library mapped into this process?
bool mpi_is_mapped();

Abi abi();
// Is the library at this path, which is mapped, of Open MPI's family?
bool is_open_mpi(const char* path);

// The address of PMPI_`name` ("Send"), or of an extension ("X_Comm_agree"); ends the process with a sentence if there
// is none.
void* find_pmpi(const char* name);
// Is this address in the code of the library itself?
bool is_in_library(const void* address);
// The library's own function of that name, which this one takes the place of.
void* find_in_library(const char* name);

// The function of a profiling tool that stands between this preload and the library: a shared library before libmpi
// that defines MPI_X itself. Its MPI_X is to be called, and its call of PMPI_X comes back to the preload, which
// accounts for it.
class Tool {
 public:
  constexpr Tool() = default;
  // The tool's MPI_`name`, or null where the library's own is next.
  void* function(const char* name) {
    const Stand stand = stand_.load(std::memory_order_acquire);
    if (stand == Stand::nobody) [[likely]]
      return nullptr;
    return stand == Stand::tool ? function_.load(std::memory_order_relaxed) : look(name);
  }

 private:
  enum class Stand : std::uint8_t { unknown, nobody, tool };
  void* look(const char* name);

  std::atomic<Stand> stand_{Stand::unknown};
  std::atomic<void*> function_{nullptr};
};

// Ends the process with a sentence: a tool has called the library's `name` past the preload.
[[noreturn]] void end_for_bypass(const char* name, void* tool);

// The values of mpi.h that differ between the ABIs.
struct Constants {
  long comm_world;
  long in_place;
  long any_source;
  long any_tag;
  int thread_multiple;
  int thread_serialized;
  long comm_null;
  long info_null;
};
const Constants& constants();

// Of a variable of the library that is a handle there. The program may have a copy of its own, which is then the one.
long address_of(const char* variable);
// MPICH's handles are 32 bits wide; of a word that carries one the rest means nothing.
long handle(long word);
long handle_at(long address);

// Sizes asked of the library. Negative results (undefined, error) come back as 0.
std::int64_t type_size(long datatype);
std::int64_t comm_size(long communicator);
bool is_intercommunicator(long communicator);
// Does an error in a call on it end the program? Not where the program has asked for errors to return, or has a handler
// of its own.
bool ends_on_error(long communicator);

}  // namespace dryfly::preload
