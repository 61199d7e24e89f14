// One-sided data: put, get, accumulate, get_accumulate, fetch_and_op, compare_and_swap and their request forms, on
// windows made in each way (create, allocate, dynamic), with every kind of synchronisation, up to a megabyte.
// Contention, where many ranks meet in one place, is rma_contended.c's subject.
#include "check.h"

typedef enum { fence, pscw, lock_each, lock_all, synchronisation_count } Synchronisation;
static const char* const synchronisation_names[] = {"fence", "post/start/complete/wait", "lock", "lock_all"};

typedef enum { created, allocated, dynamic, window_kind_count } WindowKind;
static const char* const window_names[] = {"create", "allocate", "create_dynamic"};

typedef struct {
  MPI_Win handle;
  WindowKind kind;
  int64_t* memory;
  MPI_Aint base;  // displacement of the right neighbour's memory; its address in a dynamic window
  int elements;
} Window;

static Window make_window(WindowKind kind, int elements) {
  Window w = {.kind = kind, .elements = elements};
  MPI_Aint bytes = (MPI_Aint)elements * 8, own_address;
  if (kind == allocated) {
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w.memory, &w.handle);
    return w;
  }
  w.memory = allocate((size_t)bytes);
  if (kind == created) {
    MPI_Win_create(w.memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w.handle);
    return w;
  }
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &w.handle);
  MPI_Win_attach(w.handle, w.memory, bytes);
  MPI_Get_address(w.memory, &own_address);
  MPI_Sendrecv(&own_address, 1, MPI_AINT, left_rank(), 0, &w.base, 1, MPI_AINT, right_rank(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  return w;
}

static void free_window(Window* w) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (w->kind == dynamic) MPI_Win_detach(w->handle, w->memory);
  MPI_Win_free(&w->handle);
  if (w->kind != allocated) free(w->memory);
}

// Opens and closes an epoch in which each rank accesses its right neighbour; after the end the data is visible there.
static void begin(Synchronisation how, MPI_Win window) {
  if (how == fence) MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
  if (how == lock_each) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right_rank(), 0, window);
  if (how == lock_all) MPI_Win_lock_all(0, window);
  if (how != pscw) return;
  MPI_Group world, origin, target;
  int left = left_rank(), right = right_rank();
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &left, &origin);
  MPI_Group_incl(world, 1, &right, &target);
  MPI_Win_post(origin, 0, window);
  MPI_Win_start(target, 0, window);
  MPI_Group_free(&origin);
  MPI_Group_free(&target);
  MPI_Group_free(&world);
}

static void end(Synchronisation how, MPI_Win window) {
  if (how == fence) MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  if (how == lock_each) MPI_Win_unlock(right_rank(), window);
  if (how == lock_all) MPI_Win_unlock_all(window);
  if (how == pscw) {
    MPI_Win_complete(window);
    MPI_Win_wait(window);
  } else {
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

static void require_values(const int64_t* values, int count, int seed, int64_t factor, const char* what,
                           Synchronisation how, const Window* w) {
  for (int i = 0; i < count; ++i)
    REQUIRE(values[i] == value_of(seed, i) * factor,
            "%s (%s, window by %s): element %d of %d is %lld and should be %lld", what, synchronisation_names[how],
            window_names[w->kind], i, count, (long long)values[i], (long long)(value_of(seed, i) * factor));
}

static void set_own_memory(Window* w, int seed) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, my_rank, 0, w->handle);
  for (int i = 0; i < w->elements; ++i) w->memory[i] = value_of(seed, i);
  MPI_Win_unlock(my_rank, w->handle);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void every_operation(Synchronisation how, Window* w) {
  int n = w->elements, right = right_rank();
  int64_t *local = allocate((size_t)n * 8), *result = allocate((size_t)n * 8);
  for (int i = 0; i < n; ++i) local[i] = value_of(my_rank, i);

  begin(how, w->handle);
  MPI_Put(local, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, w->handle);
  end(how, w->handle);
  require_values(w->memory, n, left_rank(), 1, "put", how, w);

  set_own_memory(w, my_rank);
  begin(how, w->handle);
  MPI_Get(result, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, w->handle);
  end(how, w->handle);
  require_values(result, n, right, 1, "get", how, w);

  set_own_memory(w, left_rank());
  begin(how, w->handle);
  MPI_Accumulate(local, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, MPI_SUM, w->handle);
  MPI_Accumulate(local, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, MPI_SUM, w->handle);
  end(how, w->handle);
  require_values(w->memory, n, left_rank(), 3, "accumulate twice", how, w);
  MPI_Barrier(MPI_COMM_WORLD);  // the next epoch may change what was just compared

  begin(how, w->handle);  // the target holds 3 x this rank's values; fetch them and replace them
  MPI_Get_accumulate(local, n, MPI_INT64_T, result, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, MPI_REPLACE,
                     w->handle);
  end(how, w->handle);
  require_values(result, n, my_rank, 3, "the fetched part of get_accumulate", how, w);
  require_values(w->memory, n, left_rank(), 1, "the replaced part of get_accumulate", how, w);

  begin(how, w->handle);  // reads that leave the target as it is
  MPI_Get_accumulate(NULL, 0, MPI_INT64_T, result, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, MPI_NO_OP,
                     w->handle);
  end(how, w->handle);
  require_values(result, n, my_rank, 1, "get_accumulate with no_op", how, w);
  free(local);
  free(result);
}

static void single_element_atomics(Window* w) {
  int right = right_rank();
  int64_t one = 1, wrong = -5, replacement = 999, found = 0;
  set_own_memory(w, left_rank());
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, w->handle);
  MPI_Fetch_and_op(&one, &found, MPI_INT64_T, right, w->base, MPI_SUM, w->handle);
  MPI_Win_flush(right, w->handle);
  REQUIRE_EQUAL(found, value_of(my_rank, 0), "what fetch_and_op found");
  MPI_Fetch_and_op(NULL, &found, MPI_INT64_T, right, w->base, MPI_NO_OP, w->handle);
  MPI_Win_flush(right, w->handle);
  REQUIRE_EQUAL(found, value_of(my_rank, 0) + 1, "the sum that fetch_and_op left");
  MPI_Compare_and_swap(&replacement, &wrong, &found, MPI_INT64_T, right, w->base, w->handle);
  MPI_Win_flush(right, w->handle);
  REQUIRE_EQUAL(found, value_of(my_rank, 0) + 1, "what a compare_and_swap that fails found");
  int64_t expected = found;
  MPI_Compare_and_swap(&replacement, &expected, &found, MPI_INT64_T, right, w->base, w->handle);
  MPI_Win_flush(right, w->handle);
  REQUIRE_EQUAL(found, expected, "what a compare_and_swap that succeeds found");
  MPI_Win_unlock(right, w->handle);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, my_rank, 0, w->handle);
  REQUIRE_EQUAL(w->memory[0], 999, "the swapped value");
  MPI_Win_unlock(my_rank, w->handle);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void request_operations(Window* w) {
  int n = w->elements, right = right_rank();
  int64_t *local = allocate((size_t)n * 8), *result = allocate((size_t)n * 8);
  MPI_Request request;
  for (int i = 0; i < n; ++i) local[i] = value_of(my_rank, i);
  MPI_Win_lock_all(0, w->handle);
  MPI_Rput(local, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, w->handle, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_flush(right, w->handle);
  MPI_Raccumulate(local, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, MPI_SUM, w->handle, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_flush_all(w->handle);
  MPI_Rget(result, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, w->handle, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  require_values(result, n, my_rank, 2, "rget", lock_all, w);
  MPI_Rget_accumulate(local, n, MPI_INT64_T, result, n, MPI_INT64_T, right, w->base, n, MPI_INT64_T, MPI_MIN, w->handle,
                      &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  require_values(result, n, my_rank, 2, "rget_accumulate", lock_all, w);
  MPI_Win_unlock_all(w->handle);
  MPI_Barrier(MPI_COMM_WORLD);
  require_values(w->memory, n, left_rank(), 1, "the minimum of rget_accumulate", lock_all, w);
  free(local);
  free(result);
}

// Each type in its own arithmetic: every rank adds (its rank + 1) to its right neighbour's 1.
#define ACCUMULATE_TYPE(Type, mpi_type)                                                                            \
  do {                                                                                                             \
    enum { count_ = 50 };                                                                                          \
    Type exposed_[count_], local_[count_], largest_ = (Type)100, fetched_ = 0;                                     \
    MPI_Win window_;                                                                                               \
    for (int i_ = 0; i_ < count_; ++i_) exposed_[i_] = (Type)1, local_[i_] = (Type)(my_rank + 1);                  \
    MPI_Win_create(exposed_, sizeof exposed_, sizeof(Type), MPI_INFO_NULL, MPI_COMM_WORLD, &window_);              \
    MPI_Win_fence(0, window_);                                                                                     \
    MPI_Accumulate(local_, count_, mpi_type, right_rank(), 0, count_, mpi_type, MPI_SUM, window_);                 \
    MPI_Win_fence(0, window_);                                                                                     \
    for (int i_ = 0; i_ < count_; ++i_)                                                                            \
      REQUIRE(exposed_[i_] == (Type)(left_rank() + 2), "accumulating " #mpi_type " is wrong at %d", i_);           \
    MPI_Win_fence(0, window_);                                                                                     \
    MPI_Fetch_and_op(&largest_, &fetched_, mpi_type, right_rank(), 7, MPI_MAX, window_);                           \
    MPI_Win_fence(0, window_);                                                                                     \
    REQUIRE(exposed_[7] == (Type)100 && fetched_ == (Type)(my_rank + 2), "the maximum of " #mpi_type " is wrong"); \
    MPI_Win_free(&window_);                                                                                        \
  } while (0)

static void types(void) {
  ACCUMULATE_TYPE(int8_t, MPI_INT8_T);
  ACCUMULATE_TYPE(uint16_t, MPI_UINT16_T);
  ACCUMULATE_TYPE(int32_t, MPI_INT32_T);
  ACCUMULATE_TYPE(uint64_t, MPI_UINT64_T);
  ACCUMULATE_TYPE(float, MPI_FLOAT);
  ACCUMULATE_TYPE(double, MPI_DOUBLE);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  static const int sizes[] = {1, 24, 25, 300, 2500, 131072};  // 8 B to 1 MiB; 24 is the largest inline
  for (int s = 0; s < 6; ++s)
    for (WindowKind kind = created; kind < window_kind_count; ++kind) {
      Window w = make_window(kind, sizes[s]);
      for (Synchronisation how = fence; how < synchronisation_count; ++how) every_operation(how, &w);
      single_element_atomics(&w);
      request_operations(&w);
      free_window(&w);
    }
  types();
  return check_end("rma");
}
