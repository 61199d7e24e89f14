// Sums of floats that are small whole numbers, so that every order of adding gives the same bits.
#pragma once

#include "collective.h"

enum { period = 16 };  // of the values of a vector

static inline float value_of(int rank, int at, int repetition) {
  return (float)((rank * 3 + at % period + repetition + 1000) % 32);
}

static inline void fill_vector(int values, int repetition) {
  const size_t bytes = (size_t)values * sizeof(float);
  char* const host = on_host(to_send, bytes, 0);
  for (int at = 0; at < values; ++at) ((float*)host)[at] = value_of(my_rank, at, repetition);
  back_to_buffer(to_send, host, bytes);
}

static inline void fill_values(int repetition) { fill_vector(count, repetition); }

// `values` elements have arrived, and the first of them belongs to place `first` of the vector.
static inline long wrong_sums(int first, int values, int repetition) {
  float sums[period] = {0};
  for (int at = 0; at < period; ++at)
    for (int rank = 0; rank < rank_count; ++rank) sums[at] += value_of(rank, at, repetition);
  long wrong = 0;
  const size_t bytes = (size_t)values * sizeof(float);
  char* const host = on_host(received, bytes, 1);
  for (int at = 0; at < values; ++at) {
    wrong += ((float*)host)[at] != sums[(first + at) % period];
    ((float*)host)[at] = -1;
  }
  back_to_buffer(received, host, bytes);
  return wrong;
}
