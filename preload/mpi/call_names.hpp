// The names of the interposed MPI functions in the order of RankPage::profile, for whoever prints a profile. Free of
// dependencies: the conductor includes it too.
#pragma once

#include <cstdint>

namespace dryfly::preload {

inline constexpr const char* call_names[] = {
#define DRYFLY_MPI_CALL(name, arguments, mode, bytes) "MPI_" #name,
#define DRYFLY_MPI_EXTENSION(name, arguments, mode) "MPIX_" #name,
#define DRYFLY_MPI_LIFE(name, arguments) "MPI_" #name,
#include "preload/mpi/mpi_calls.def"
#undef DRYFLY_MPI_LIFE
#undef DRYFLY_MPI_EXTENSION
#undef DRYFLY_MPI_CALL
};

inline constexpr std::uint32_t call_name_count = sizeof call_names / sizeof call_names[0];

}  // namespace dryfly::preload
