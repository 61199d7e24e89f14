// What depends on the data: buffers that are not contiguous, and each operation on each type it is meant for.
#pragma once
#include "measure.h"

// Every second block of so many doubles.
static void strided(int size, int block) {
  MPI_Datatype type;
  MPI_Type_vector(size / 8 / block, block, 2 * block, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  for (int turn = 0; turn < 3; ++turn) {
    MPI_Irecv(theirs, 1, type, left, 0, WORLD, &requests[0]);
    MPI_Isend(mine, 1, type, right, 0, WORLD, &requests[1]);
    MPI_Waitall(2, requests, ALL_IGNORED);
  }
  MPI_Type_free(&type);
}

static void layouts(void) {
  const int sizes[] = {512, 8192}, blocks[] = {1, 4, 16};
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) strided(sizes[i], blocks[j]);
}

enum { arithmetic = 1, order = 2, bits = 4, logic = 8, places_too = 16 };
typedef struct {
  MPI_Datatype type;
  int operations;
} Reducible;

static void reduce_alone(MPI_Datatype type, MPI_Op operation) {
  int size;
  MPI_Type_size(type, &size);
  if (size <= 0) return;
  for (int bytes = 256; bytes <= 768; bytes += 512) MPI_Reduce_local(mine, theirs, bytes / size, type, operation);
}

static void reductions(void) {
  if (rank_of_me != 2 && rank_of_me != 3) return;  // two of the ranks that are counted, each half of them
  const int integer = arithmetic | order | bits | logic, real = arithmetic | order;
  const Reducible all[] = {
      {MPI_SIGNED_CHAR, integer}, {MPI_UNSIGNED_CHAR, integer}, {MPI_SHORT, integer}, {MPI_UNSIGNED_SHORT, integer},
      {MPI_INT, integer}, {MPI_UNSIGNED, integer}, {MPI_LONG, integer}, {MPI_UNSIGNED_LONG, integer},
      {MPI_LONG_LONG_INT, integer}, {MPI_UNSIGNED_LONG_LONG, integer}, {MPI_INT8_T, integer}, {MPI_INT16_T, integer},
      {MPI_INT32_T, integer}, {MPI_INT64_T, integer}, {MPI_UINT8_T, integer}, {MPI_UINT16_T, integer},
      {MPI_UINT32_T, integer}, {MPI_UINT64_T, integer}, {MPI_AINT, integer}, {MPI_OFFSET, integer},
      {MPI_COUNT, integer}, {MPI_BYTE, bits}, {MPI_C_BOOL, logic}, {MPI_FLOAT, real}, {MPI_DOUBLE, real},
      {MPI_LONG_DOUBLE, real}, {MPI_C_FLOAT_COMPLEX, arithmetic}, {MPI_C_DOUBLE_COMPLEX, arithmetic},
      {MPI_FLOAT_INT, places_too}, {MPI_DOUBLE_INT, places_too}, {MPI_LONG_INT, places_too}, {MPI_2INT, places_too},
      {MPI_SHORT_INT, places_too},
      // Of Fortran, which not every build has.
      {MPI_INTEGER, integer}, {MPI_LOGICAL, logic}, {MPI_REAL, real}, {MPI_DOUBLE_PRECISION, real},
      {MPI_COMPLEX, arithmetic}, {MPI_DOUBLE_COMPLEX, arithmetic}, {MPI_2INTEGER, places_too},
      {MPI_2DOUBLE_PRECISION, places_too},
  };
  const struct {
    MPI_Op operation;
    int kind;
  } operations[] = {
      {MPI_SUM, arithmetic}, {MPI_PROD, arithmetic}, {MPI_MIN, order}, {MPI_MAX, order}, {MPI_BAND, bits},
      {MPI_BOR, bits}, {MPI_BXOR, bits}, {MPI_LAND, logic}, {MPI_LOR, logic}, {MPI_LXOR, logic},
      {MPI_MINLOC, places_too}, {MPI_MAXLOC, places_too},
  };
  MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (unsigned t = (unsigned)rank_of_me - 2; t < sizeof all / sizeof all[0]; t += 2) {
    if (all[t].type == MPI_DATATYPE_NULL) continue;
    for (unsigned o = 0; o < sizeof operations / sizeof operations[0]; ++o)
      if (all[t].operations & operations[o].kind) reduce_alone(all[t].type, operations[o].operation);
  }
  MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}
