// Reduce, Allreduce, Reduce_scatter, Reduce_scatter_block, Scan and Exscan; blocking, nonblocking and persistent; out
// of place and in place; with built-in operations on several types and with a user's operation that does not commute,
// whose result shows the order in which ranks were combined.
#include "collective.h"

// 2x2 matrices modulo a prime: multiplication is associative and does not commute.
typedef struct {
  int64_t a, b, c, d;
} Matrix;

enum { prime = 1000003 };

static Matrix multiply(Matrix x, Matrix y) {
  return (Matrix){(x.a * y.a + x.b * y.c) % prime, (x.a * y.b + x.b * y.d) % prime, (x.c * y.a + x.d * y.c) % prime,
                  (x.c * y.b + x.d * y.d) % prime};
}

static void multiply_all(void* left, void* result, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((Matrix*)result)[i] = multiply(((Matrix*)left)[i], ((Matrix*)result)[i]);
}

static Matrix matrix_of(int rank, int index) { return (Matrix){rank + 1, index % 7 + 1, 1, rank % 3}; }

static void fill_matrices(Matrix* matrices, int count) {
  for (int i = 0; i < count; ++i) matrices[i] = matrix_of(my_rank, i);
}

// Element i of the product over ranks first <= r < end, in rank order.
static void require_product(const Matrix* found, int count, int index_offset, int first, int end, Form form,
                            const char* what) {
  for (int i = 0; i < count; ++i) {
    Matrix product = matrix_of(first, index_offset + i);
    for (int r = first + 1; r < end; ++r) product = multiply(product, matrix_of(r, index_offset + i));
    REQUIRE(memcmp(&product, &found[i], sizeof product) == 0, "%s %s: element %d of %d is wrong", form_names[form],
            what, i, count);
  }
}

static void ordered_reductions(Form form, int block, MPI_Op op, MPI_Datatype type) {
  int total = block * rank_count, root = rank_count / 2;
  int* counts = allocate((size_t)rank_count * sizeof(int));
  Matrix *send = allocate((size_t)total * sizeof(Matrix)), *receive = allocate((size_t)total * sizeof(Matrix));
  fill_matrices(send, total);
  for (int r = 0; r < rank_count; ++r) counts[r] = r % 2 ? block : r == rank_count - 1 ? block : block - 1;

  COLLECTIVE(form, Reduce, reduce, send, receive, block, type, op, root, MPI_COMM_WORLD);
  if (my_rank == root) require_product(receive, block, 0, 0, rank_count, form, "reduce");
  COLLECTIVE(form, Allreduce, allreduce, send, receive, block, type, op, MPI_COMM_WORLD);
  require_product(receive, block, 0, 0, rank_count, form, "allreduce");
  COLLECTIVE(form, Scan, scan, send, receive, block, type, op, MPI_COMM_WORLD);
  require_product(receive, block, 0, 0, my_rank + 1, form, "scan");
  COLLECTIVE(form, Exscan, exscan, send, receive, block, type, op, MPI_COMM_WORLD);
  if (my_rank > 0) require_product(receive, block, 0, 0, my_rank, form, "exscan");
  COLLECTIVE(form, Reduce_scatter_block, reduce_scatter_block, send, receive, block, type, op, MPI_COMM_WORLD);
  require_product(receive, block, my_rank * block, 0, rank_count, form, "reduce_scatter_block");
  COLLECTIVE(form, Reduce_scatter, reduce_scatter, send, receive, counts, type, op, MPI_COMM_WORLD);
  int before = 0;
  for (int r = 0; r < my_rank; ++r) before += counts[r];
  require_product(receive, counts[my_rank], before, 0, rank_count, form, "reduce_scatter");

  fill_matrices(receive, total);
  COLLECTIVE_IN_PLACE(form, Allreduce, allreduce, MPI_IN_PLACE, receive, block, type, op, MPI_COMM_WORLD);
  require_product(receive, block, 0, 0, rank_count, form, "allreduce in place");
  fill_matrices(receive, total);
  COLLECTIVE_IN_PLACE(form, Reduce, reduce, my_rank == root ? MPI_IN_PLACE : receive, receive, block, type, op, root,
                      MPI_COMM_WORLD);
  if (my_rank == root) require_product(receive, block, 0, 0, rank_count, form, "reduce in place");
  fill_matrices(receive, total);
  COLLECTIVE_IN_PLACE(form, Scan, scan, MPI_IN_PLACE, receive, block, type, op, MPI_COMM_WORLD);
  require_product(receive, block, 0, 0, my_rank + 1, form, "scan in place");
  fill_matrices(receive, total);
  COLLECTIVE_IN_PLACE(form, Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, receive, block, type, op,
                      MPI_COMM_WORLD);
  require_product(receive, block, my_rank * block, 0, rank_count, form, "reduce_scatter_block in place");
  free(counts);
  free(send);
  free(receive);
}

// Sums of whole numbers below 2^53 are exact in any order; each type is reduced and compared in its own arithmetic.
#define BUILT_IN_SUM(form, Type, mpi_type, count)                                                                 \
  do {                                                                                                            \
    Type *send_ = allocate((size_t)(count) * sizeof(Type)), *receive_ = allocate((size_t)(count) * sizeof(Type)); \
    for (int i_ = 0; i_ < (count); ++i_) send_[i_] = (Type)(my_rank + i_ % 10);                                   \
    COLLECTIVE(form, Allreduce, allreduce, send_, receive_, count, mpi_type, MPI_SUM, MPI_COMM_WORLD);            \
    for (int i_ = 0; i_ < (count); ++i_)                                                                          \
      REQUIRE(receive_[i_] == (Type)(rank_count * (rank_count - 1) / 2 + rank_count * (i_ % 10)),                 \
              "the %s sum of " #mpi_type " is wrong at element %d of %d", form_names[form], i_, count);           \
    free(send_);                                                                                                  \
    free(receive_);                                                                                               \
  } while (0)

static void built_in_operations(Form form) {
  static const int counts[] = {1, 500, 50000};
  for (int k = 0; k < 3; ++k) {
    BUILT_IN_SUM(form, int32_t, MPI_INT32_T, counts[k]);
    BUILT_IN_SUM(form, double, MPI_DOUBLE, counts[k]);
    BUILT_IN_SUM(form, float, MPI_FLOAT, counts[k]);
    BUILT_IN_SUM(form, uint16_t, MPI_UINT16_T, counts[k]);
  }
  int64_t mine = my_rank * 37 % rank_count, found;
  COLLECTIVE(form, Allreduce, allreduce, &mine, &found, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  int64_t largest = 0;
  for (int r = 0; r < rank_count; ++r) largest = r * 37 % rank_count > largest ? r * 37 % rank_count : largest;
  REQUIRE_EQUAL(found, largest, "the maximum");
  uint64_t bit = (uint64_t)1 << my_rank % 64, bits;
  COLLECTIVE(form, Allreduce, allreduce, &bit, &bits, 1, MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD);
  REQUIRE(bits == (rank_count >= 64 ? ~(uint64_t)0 : ((uint64_t)1 << rank_count) - 1), "the bitwise or is wrong");
  struct {
    double value;
    int rank;
  } pair = {my_rank == rank_count / 3 ? -1.0 : 2.0, my_rank}, least;
  COLLECTIVE(form, Allreduce, allreduce, &pair, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  REQUIRE_EQUAL(least.rank, rank_count / 3, "the rank of the minimum");
}

int main(int argc, char** argv) {
  MPI_Op op;
  MPI_Datatype type;
  check_begin(&argc, &argv);
  MPI_Op_create(multiply_all, 0, &op);
  MPI_Type_contiguous(4, MPI_INT64_T, &type);
  MPI_Type_commit(&type);
  for (Form form = blocking; form < form_count; ++form) {
    static const int blocks[] = {1, 5, 200};
    for (int k = 0; k < 3; ++k) ordered_reductions(form, blocks[k], op, type);
    built_in_operations(form);
  }
  MPI_Op_free(&op);
  MPI_Type_free(&type);
  return check_end("reductions");
}
