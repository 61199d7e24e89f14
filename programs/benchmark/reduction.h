// Sums of floats that are small whole numbers, so that every order of adding gives the same bits.
#pragma once

#include "collective.h"

enum { period = 16 };  // of the values of a vector

static inline float value_of(int rank, int at, int repetition) {
  return (float)((rank * 3 + at % period + repetition + 1000) % 32);
}

static inline void fill_vector(int values, int repetition) {
  for (int at = 0; at < values; ++at) ((float*)to_send)[at] = value_of(my_rank, at, repetition);
}

static inline void fill_values(int repetition) { fill_vector(count, repetition); }

// `values` elements have arrived, and the first of them belongs to place `first` of the vector.
static inline long wrong_sums(int first, int values, int repetition) {
  float sums[period] = {0};
  for (int at = 0; at < period; ++at)
    for (int rank = 0; rank < rank_count; ++rank) sums[at] += value_of(rank, at, repetition);
  long wrong = 0;
  for (int at = 0; at < values; ++at) {
    wrong += ((float*)received)[at] != sums[(first + at) % period];
    ((float*)received)[at] = -1;
  }
  return wrong;
}
