// Reductions of buffers on GPUs, each as soon as its data has been copied there: Open MPI adds on the processor.
#include "check.h"
#include "cudart.h"

enum { count = 1500, parts_most = 64 };

static int *from, *to;  // on a device

static void give(int first) {
  int host[count];
  for (int i = 0; i < count; ++i) host[i] = first + i;
  CHECK(cuda.copy(from, host, sizeof host, cuda_any_way) == 0);
}

static void clear(int value) {
  int host[count];
  for (int i = 0; i < count; ++i) host[i] = value;
  CHECK(cuda.copy(to, host, sizeof host, cuda_any_way) == 0);
}

// Each element is `first` and `each` times its place.
static void see(const char* what, int elements, int first, int each) {
  int host[count];
  CHECK(cuda.copy(host, to, sizeof host, cuda_any_way) == 0);
  for (int i = 0; i < elements; ++i)
    REQUIRE(host[i] == first + each * i, "%s: element %d is %d and should be %d", what, i, host[i], first + each * i);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  load_cuda();
  CHECK(rank_count <= parts_most && cuda.malloc((void**)&from, count * sizeof *from) == 0);
  CHECK(cuda.malloc((void**)&to, count * sizeof *to) == 0);
  const int ranks = rank_count, below = my_rank * (my_rank - 1) / 2, all = ranks * (ranks - 1) / 2;

  give(5);
  clear(7);
  MPI_Reduce_local(from, to, count, MPI_INT, MPI_SUM);
  see("Reduce_local", count, 12, 1);

  give(my_rank);
  clear(-1);
  MPI_Allreduce(from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  see("Allreduce", count, all, ranks);

  clear(my_rank);
  MPI_Allreduce(MPI_IN_PLACE, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  see("Allreduce in place", count, all, 0);

  give(my_rank);
  clear(-1);
  MPI_Reduce(from, to, count, MPI_INT, MPI_SUM, ranks - 1, MPI_COMM_WORLD);
  see("Reduce", count, my_rank == ranks - 1 ? all : -1, my_rank == ranks - 1 ? ranks : 0);

  give(my_rank);
  clear(-1);
  MPI_Scan(from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  see("Scan", count, below + my_rank, my_rank + 1);

  give(my_rank);
  clear(-1);
  MPI_Exscan(from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (my_rank > 0) see("Exscan", count, below, my_rank);

  const int part = count / ranks;
  give(my_rank);
  clear(-1);
  MPI_Reduce_scatter_block(from, to, part, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  see("Reduce_scatter_block", part, all + ranks * part * my_rank, ranks);

  int parts[parts_most];
  for (int i = 0; i < ranks; ++i) parts[i] = i % 2 == 0 ? part : part - 1;
  give(my_rank);
  clear(-1);
  MPI_Reduce_scatter(from, to, parts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  int before = 0;
  for (int i = 0; i < my_rank; ++i) before += parts[i];
  see("Reduce_scatter", parts[my_rank], all + ranks * before, ranks);

  if (my_rank == 0) printf("reductions compared, now a type with gaps\n");
  // Every second element, from the third on.
  MPI_Datatype bare, type;
  const int lengths[] = {1, 1}, places[] = {2, 4};
  MPI_Type_indexed(2, lengths, places, MPI_INT, &bare);
  MPI_Type_create_resized(bare, 0, 6 * (MPI_Aint)sizeof(int), &type);
  MPI_Type_commit(&type);
  give(my_rank);
  clear(-1);
  MPI_Sendrecv(from, 3, type, my_rank, 0, to, 3, type, my_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int host[count];
  CHECK(cuda.copy(host, to, sizeof host, cuda_any_way) == 0);
  for (int i = 0; i < 18; ++i) CHECK(host[i] == (i % 6 == 2 || i % 6 == 4 ? my_rank + i : -1));
  return check_end("gpu_reductions");
}
