// The MPI library of this process: which one it is, what its constants are, and where its PMPI_ functions lie. Written
// against no mpi.h, because one build of this file serves MPICH, the MPI-5 standard ABI and Open MPI. All arguments of
// MPI functions are whole machine words or narrower, in registers or on the stack, on x86-64 and aarch64 alike; so a
// call is forwarded as words without knowing what they mean.
#pragma once

#include <cstdint>

namespace dryfly::preload {

enum class Abi { mpich, standard, open_mpi };

// Is an MPI library mapped into this process?
bool mpi_is_mapped();

Abi abi();

// The address of PMPI_`name` ("Send"); ends the process with a sentence if there is none.
void* find_pmpi(const char* name);
// The library's own function of that name, which this one takes the place of.
void* find_in_library(const char* name);

// The values of mpi.h that differ between the ABIs.
struct Constants {
  long comm_world;
  long in_place;
  long any_source;
  long any_tag;
  int thread_multiple;
  long comm_null;
  long info_null;
};
const Constants& constants();

// Sizes asked of the library. Negative results (undefined, error) come back as 0.
std::int64_t type_size(long datatype);
std::int64_t comm_size(long communicator);
bool is_intercommunicator(long communicator);

}  // namespace dryfly::preload
