// One-sided communication: each kind of access under each kind of synchronization.
#pragma once
#include "measure.h"

#define TO_RIGHT mine, doubles, MPI_DOUBLE, right, 0, doubles, MPI_DOUBLE

static void fences(int doubles, MPI_Win win) {
  MPI_Win_fence(0, win);
  MPI_Put(TO_RIGHT, win);
  MPI_Win_fence(0, win);
  MPI_Get(TO_RIGHT, win);
  MPI_Win_fence(0, win);
}

static void locks(int doubles, MPI_Win win) {
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win);
  MPI_Get(TO_RIGHT, win);
  MPI_Win_unlock(right, win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
  MPI_Put(TO_RIGHT, win);
  MPI_Win_unlock(right, win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);  // contended
  MPI_Put(mine, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, win);
  MPI_Win_unlock(0, win);
}

static void exposed(int doubles, MPI_Win win) {
  MPI_Group all, to, from;
  int flag;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &right, &to);
  MPI_Group_incl(all, 1, &left, &from);
  for (int tests = 0; tests < 2; ++tests) {
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(TO_RIGHT, win);
    MPI_Win_complete(win);
    if (tests) UNTIL(flag, MPI_Win_test(win, &flag));
    else MPI_Win_wait(win);
  }
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Group_free(&all);
}

static void atomics(int doubles, MPI_Win win) {
  double value = 1, was;
  long one = 1, two = 2, found;
  MPI_Accumulate(mine, doubles, MPI_DOUBLE, right, 0, doubles, MPI_DOUBLE, MPI_SUM, win);
  MPI_Win_flush(right, win);
  MPI_Get_accumulate(mine, doubles, MPI_DOUBLE, theirs, doubles, MPI_DOUBLE, right, 0, doubles, MPI_DOUBLE, MPI_SUM,
                     win);
  MPI_Win_flush(right, win);
  MPI_Fetch_and_op(&value, &was, MPI_DOUBLE, right, 0, MPI_SUM, win);
  MPI_Win_flush(right, win);
  MPI_Fetch_and_op(&one, &found, MPI_LONG, 0, 8, MPI_SUM, win);
  MPI_Win_flush_all(win);
  MPI_Compare_and_swap(&one, &two, &found, MPI_LONG, right, 16, win);
  MPI_Win_flush_local_all(win);
  MPI_Win_flush(right, win);
  MPI_Raccumulate(mine, doubles, MPI_DOUBLE, right, 0, doubles, MPI_DOUBLE, MPI_SUM, win, &requests[0]);
  MPI_Wait(&requests[0], IGNORE);
}

static void memory(int size, MPI_Win win) {
  const int doubles = size / 8;
  fences(doubles, win);
  locks(doubles, win);
  exposed(doubles, win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < window; ++i) MPI_Put(TO_RIGHT, win);
  MPI_Win_flush(right, win);
  MPI_Get(TO_RIGHT, win);
  MPI_Win_flush_local(right, win);
  MPI_Rput(TO_RIGHT, win, &requests[0]);
  MPI_Rget(theirs, doubles, MPI_DOUBLE, right, 0, doubles, MPI_DOUBLE, win, &requests[1]);
  MPI_Waitall(2, requests, ALL_IGNORED);
  MPI_Win_sync(win);
  if (size <= 1024) atomics(doubles, win);
  MPI_Win_unlock_all(win);
  MPI_Barrier(WORLD);
}

static void windows_of_memory(void) {
  MPI_Win made;
  void* base;
  MPI_Win_create(mine, largest, 1, MPI_INFO_NULL, WORLD, &made);
  MPI_Win_free(&made);
  MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &made);
  MPI_Win_free(&made);
  MPI_Win_allocate(largest, 8, MPI_INFO_NULL, WORLD, &base, &made);
  MPI_Win_free(&made);
}
