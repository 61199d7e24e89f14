// Where each rank's message is found: one behind the other, all of one size, as OSU's tests of vectors have it.
#pragma once

#include "collective.h"

static int *counts, *places;

static inline void place_all(void) {
  for (int rank = 0; rank < rank_count; ++rank) {
    counts[rank] = count;
    places[rank] = rank * count;
  }
}

static inline void begin_places(void) {
  counts = memory_for((size_t)rank_count, sizeof *counts);
  places = memory_for((size_t)rank_count, sizeof *places);
}
