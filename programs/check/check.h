// What every conformance program here shares: start and end, a requirement that fails with a sentence, and data that
// is different in every byte, for every sender, so that a message in the wrong place cannot go unnoticed. The first
// failure ends the whole job with MPI_Abort(1); success prints "ok NAME" on rank 0, and nothing else is printed.
#pragma once

#include <mpi.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int my_rank;
static int rank_count;

__attribute__((noreturn, format(printf, 3, 4))) static inline void check_fail(const char* file, int line,
                                                                              const char* sentence, ...) {
  va_list arguments;
  fprintf(stderr, "%s:%d: rank %d of %d: ", file, line, my_rank, rank_count);
  va_start(arguments, sentence);
  vfprintf(stderr, sentence, arguments);
  va_end(arguments);
  fprintf(stderr, "\n");
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  exit(1);
}

#define REQUIRE(condition, ...) ((condition) ? (void)0 : check_fail(__FILE__, __LINE__, __VA_ARGS__))
#define REQUIRE_EQUAL(actual, expected, what)                                                 \
  do {                                                                                        \
    long long actual_ = (long long)(actual), expected_ = (long long)(expected);               \
    REQUIRE(actual_ == expected_, "%s is %lld and should be %lld", what, actual_, expected_); \
  } while (0)

static inline void check_begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  REQUIRE(rank_count >= 2, "this program needs at least 2 ranks");
}

static inline int check_end(const char* name) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank == 0) {
    printf("ok %s\n", name);
    fflush(stdout);
  }
  MPI_Finalize();
  return 0;
}

static inline void* allocate(size_t bytes) {
  void* memory = malloc(bytes > 0 ? bytes : 1);
  REQUIRE(memory != NULL, "no memory for %zu bytes", bytes);
  return memory;
}

// The value of element `index` in the data of `seed`: any two (seed, index) below 2^20 differ.
static inline int64_t value_of(int seed, int index) { return (int64_t)(seed + 1) * 1048576 + index; }

static inline unsigned char byte_of(int seed, size_t index) {
  uint64_t mixed = ((uint64_t)(unsigned)seed + 1) * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u;
  return (unsigned char)(mixed >> 56);
}

static inline void fill_bytes(void* buffer, size_t bytes, int seed) {
  for (size_t i = 0; i < bytes; ++i) ((unsigned char*)buffer)[i] = byte_of(seed, i);
}

static inline void require_bytes(const void* buffer, size_t bytes, int seed, const char* what) {
  for (size_t i = 0; i < bytes; ++i) {
    unsigned char found = ((const unsigned char*)buffer)[i];
    REQUIRE(found == byte_of(seed, i), "%s: byte %zu of %zu is %u and should be %u", what, i, bytes, found,
            byte_of(seed, i));
  }
}

// Ranks work in pairs (0,1), (2,3), ...; with an odd count the last one has no partner and talks to MPI_PROC_NULL.
static inline int partner_rank(void) { return (my_rank ^ 1) < rank_count ? my_rank ^ 1 : MPI_PROC_NULL; }
static inline int right_rank(void) { return (my_rank + 1) % rank_count; }
static inline int left_rank(void) { return (my_rank + rank_count - 1) % rank_count; }
