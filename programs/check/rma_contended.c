// Many ranks at one place of one window: totals must be exact, tickets unique, and critical sections exclusive.
#include "check.h"

enum { counter, lock_word, plain, ticket_board };

static MPI_Win window;
static int64_t* memory;

static int64_t fetch_and_add(int target, int place, int64_t addend) {
  int64_t found;
  MPI_Fetch_and_op(&addend, &found, MPI_INT64_T, target, place, MPI_SUM, window);
  MPI_Win_flush(target, window);
  return found;
}

static int64_t read_from(int target, int place) { return fetch_and_add(target, place, 0); }

// Each ticket is drawn once: every draw marks its own place on the board, and every place is marked once.
static void tickets_are_unique(int draws) {
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < draws; ++i) {
    int64_t ticket = fetch_and_add(0, counter, 1);
    REQUIRE(ticket >= 0 && ticket < (int64_t)draws * rank_count, "ticket %lld was never printed", (long long)ticket);
    REQUIRE_EQUAL(fetch_and_add(0, ticket_board + (int)ticket, 1), 0, "the marks on a fresh ticket");
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  REQUIRE_EQUAL(read_from(0, counter), (int64_t)draws * rank_count, "the tickets drawn");
  MPI_Win_unlock(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
}

// A lock of compare_and_swap guards a get followed by a put, which would lose updates without it.
static void lock_of_compare_and_swap(int rounds) {
  int64_t unlocked = 0, mine = my_rank + 1, found, value;
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < rounds; ++i) {
    do {
      MPI_Compare_and_swap(&mine, &unlocked, &found, MPI_INT64_T, 0, lock_word, window);
      MPI_Win_flush(0, window);
    } while (found != unlocked);
    MPI_Get(&value, 1, MPI_INT64_T, 0, plain, 1, MPI_INT64_T, window);
    MPI_Win_flush(0, window);
    ++value;
    MPI_Put(&value, 1, MPI_INT64_T, 0, plain, 1, MPI_INT64_T, window);
    MPI_Win_flush(0, window);
    MPI_Fetch_and_op(&unlocked, &found, MPI_INT64_T, 0, lock_word, MPI_REPLACE, window);
    MPI_Win_flush(0, window);
    REQUIRE_EQUAL(found, mine, "the holder of the lock");
  }
  MPI_Win_unlock_all(window);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  MPI_Get(&value, 1, MPI_INT64_T, 0, plain, 1, MPI_INT64_T, window);
  MPI_Win_unlock(0, window);
  REQUIRE_EQUAL(value, (int64_t)rounds * rank_count, "the total under the lock");
  MPI_Barrier(MPI_COMM_WORLD);
}

// The same with MPI's own exclusive lock.
static void exclusive_epochs(int rounds) {
  int64_t value, before;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  before = read_from(0, plain);
  MPI_Win_unlock(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < rounds; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Get(&value, 1, MPI_INT64_T, 0, plain, 1, MPI_INT64_T, window);
    MPI_Win_flush(0, window);
    ++value;
    MPI_Put(&value, 1, MPI_INT64_T, 0, plain, 1, MPI_INT64_T, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
  REQUIRE_EQUAL(read_from(0, plain) - before, (int64_t)rounds * rank_count, "the total of exclusive epochs");
  MPI_Win_unlock(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Every rank accumulates a vector into every rank.
static void accumulate_everywhere(void) {
  enum { count = 64 };
  double exposed[count], local[count];
  MPI_Win sums;
  for (int i = 0; i < count; ++i) exposed[i] = 0, local[i] = my_rank + i;
  MPI_Win_create(exposed, sizeof exposed, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &sums);
  MPI_Win_fence(0, sums);
  for (int r = 0; r < rank_count; ++r) MPI_Accumulate(local, count, MPI_DOUBLE, r, 0, count, MPI_DOUBLE, MPI_SUM, sums);
  MPI_Win_fence(0, sums);
  for (int i = 0; i < count; ++i)
    REQUIRE_EQUAL(exposed[i], rank_count * (rank_count - 1) / 2 + i * rank_count, "the sum of everybody's vectors");
  MPI_Win_free(&sums);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  int draws = rank_count > 16 ? 10 : 50, rounds = rank_count > 16 ? 2 : 15;
  int elements = my_rank == 0 ? ticket_board + draws * rank_count : 0;
  MPI_Win_allocate((MPI_Aint)elements * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  if (my_rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    memset(memory, 0, (size_t)elements * 8);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  tickets_are_unique(draws);
  lock_of_compare_and_swap(rounds);
  exclusive_epochs(rounds);
  accumulate_everywhere();
  MPI_Win_free(&window);
  return check_end("rma_contended");
}
