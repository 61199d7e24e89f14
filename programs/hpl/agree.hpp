// What is wrong on one rank ends all of them: a rank that stopped alone would leave the others waiting in MPI.
#pragma once

#include <mpi.h>

#include <string>

#include "bad_input.hpp"

namespace dryfly::hpl {

// Collective. Throws BadInput everywhere if `error` is not empty somewhere; `otherwise` is said where it is empty.
inline void agree(const std::string& error, const char* otherwise, MPI_Comm where) {
  int wrong = error.empty() ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX, where);
  if (wrong != 0) throw BadInput(error.empty() ? otherwise : error);
}

}  // namespace dryfly::hpl
