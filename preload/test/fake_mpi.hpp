// A stand-in for an MPI library and the provider beneath it, for the tests of the preload: it remembers how it was
// called, joins the preload to a page and a header that the test owns, and moves the clock where a real one would.
#pragma once

#include <cstdint>

#include "rank/self.hpp"

struct FakeMpi {
  dryfly::rank::Self* self;
  dryfly::wire::RankPage* page;
  dryfly::wire::SegmentHeader* header;
  long words[16];            // arguments of the last forwarded call
  std::uint32_t mode;        // Self::call_mode during it
  std::uint32_t call_index;  // RankPage::call_index during it
  std::uint64_t publishes;
  std::uint32_t gates[8];  // GateKinds in order
  std::uint32_t gate_count;
  int tests;
  int provided;                           // what MPI_Init_thread grants
  std::uint64_t takes_ps;                 // the next call moves the clock by this,
  std::uint64_t waits_ps;                 // of which so much is waiting
  int status;                             // what the next call returns
  bool nested;                            // MPI_Bcast calls MPI_Send, as libraries do
  std::uint64_t (*read_monotonic_ns)();   // CLOCK_MONOTONIC as seen from inside the library
  int (*make_segment)(const char* name);  // by shm_open inside the library
  char* request_block;                    // made when eight requests are open
  int open_requests;
};

extern "C" FakeMpi fake_mpi;

// As an MPI program sees them, with the handles of MPICH.
extern "C" {
int MPI_Init(int*, char***);
int MPI_Init_thread(int*, char***, int, int*);
int MPI_Finalize();
int MPI_Barrier(int);
int MPI_Send(const void*, int, int, int, int, int);
int MPI_Send_c(const void*, std::int64_t, int, int, int, int);
int MPI_Isend(const void*, int, int, int, int, int, int*);
int MPI_Bcast(void*, int, int, int, int);
int MPI_Allgather(const void*, int, int, void*, int, int, int);
int MPI_Alltoall(const void*, int, int, void*, int, int, int);
int MPI_Alltoallv(const void*, const int*, const int*, int, void*, const int*, const int*, int, int);
int MPI_Sendrecv(const void*, int, int, int, int, void*, int, int, int, int, int, void*);
int MPI_Rget_accumulate(const void*, int, int, void*, int, int, int, long, int, int, int, int, int*);
int MPI_Comm_spawn(const char*, char**, int, int, int, int, int*, int*);
double MPI_Wtime();
double MPI_Wtick();
}
