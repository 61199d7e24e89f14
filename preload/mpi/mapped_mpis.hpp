// Which MPI libraries are in this process, under whatever file name, and on whose account. There is to be one, and it
// is the run's: with two of them, a module of Python's on one and the script on another, each takes itself for all
// there is.
#pragma once

namespace dryfly::preload {

struct MappedMpi {
  char path[1024];
  char by[1024];  // a file that is linked against it, or that has opened it (dlopen)
};

// Fills as many as there are, up to `room`; returns how many.
int mapped_mpis(MappedMpi* found, int room);

// The same of Open MPI's libopen-pal, which libmpi and tools of Open MPI's are built on.
int mapped_open_pals(MappedMpi* found, int room);

// Is it a function of an MPI library's?
bool is_of_an_mpi(const void* function);

// Was it asked for as libmpi.so? Whoever does so takes what there is, of whatever family.
bool is_plain_name(const MappedMpi& mpi);

// Is that the file name of an MPI library, in whatever folder, and not of a part of one?
bool is_mpi_library(const char* path);

// What is to be opened in place of `file` (dlopen), by the code at `caller`: a path to a library of the family of the
// run's is as good as the name alone, by which the run's is found. Remembers who has asked.
const char* library_to_open(const char* file, const void* caller);

}  // namespace dryfly::preload
