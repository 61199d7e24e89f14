// Sums of floats that are small whole numbers, so that every order of adding gives the same bits.
#pragma once

#include "collective.h"

static inline float value_of(int rank, int at, int repetition) {
  return (float)((rank * 3 + at % 16 + repetition + 1000) % 32);
}

static inline void fill_values(int repetition) {
  for (int at = 0; at < count; ++at) ((float*)to_send)[at] = value_of(my_rank, at, repetition);
}

// `values` elements have arrived, and the first of them belongs to place `first` of the vector.
static inline long wrong_sums(int first, int values, int repetition) {
  long wrong = 0;
  for (int at = 0; at < values; ++at) {
    float sum = 0;
    for (int rank = 0; rank < rank_count; ++rank) sum += value_of(rank, first + at, repetition);
    wrong += ((float*)received)[at] != sum;
    ((float*)received)[at] = -1;
  }
  return wrong;
}
