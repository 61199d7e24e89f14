// A rank that does nothing until it is killed.
#include <unistd.h>

#include "preload/test/fake_mpi.hpp"

int main() {
  if (MPI_Wtick() > 0) pause();
}
