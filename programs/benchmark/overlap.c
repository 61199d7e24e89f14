// How much of a nonblocking receive, and of a nonblocking send, is hidden behind work of its rank: rank 0 posts it,
// works for as long as it takes alone (to the wait), and waits. The last rank is ready with the other side of the same
// message and does nothing else. Each repetition begins with a barrier. A receive that has to be matched by the
// processor, or a message of which the processor has to move a part, is not hidden.
#include "asleep.h"
#include "pair.h"

static char *out, *in;
static int bytes;

// The mean time of rank 0, in seconds.
static double cycle(int receives, double seconds, long* wrong) {
  double sum = 0;
  for (int repetition = -options.warmup; repetition < options.iterations; ++repetition) {
    if (options.validate && peer >= 0) fill(out, (size_t)bytes, seed_of(my_rank, 0, repetition));
    MPI_Barrier(MPI_COMM_WORLD);
    if (peer < 0) continue;
    MPI_Request request;
    const int mine_receives = sends == receives;
    const double started = MPI_Wtime();
    if (mine_receives)
      MPI_Irecv(in, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &request);
    else
      MPI_Isend(out, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, &request);
    if (sends) work(seconds);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (repetition >= 0) sum += MPI_Wtime() - started;
    if (options.validate && mine_receives) *wrong += wrong_bytes(in, (size_t)bytes, seed_of(peer, 0, repetition));
  }
  return sum / options.iterations;
}

static void overlap_of_size(size_t size) {
  long wrong = 0;
  double figures[4];
  bytes = (int)size;
  out = buffer_of(size);
  in = buffer_of(size);
  for (int receives = 1; receives >= 0; --receives) {
    const double pure = cycle(receives, 0, &wrong), overall = cycle(receives, pure, &wrong);
    double* const of_side = figures + (receives ? 0 : 2);
    of_side[0] = overlap_of(pure, pure, overall);
    of_side[1] = pure * 1e6;
  }
  print_row(size, figures, all_wrong(wrong));
  free_buffer(out);
  free_buffer(in);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  options.window = 0;
  read_options(argc, argv, "d", HELP_OF_PLACES);
  one_pair();
  add_column("Recv Overlap(%)", "receive_overlap_percent", 18);
  add_column("Recv Pure(us)", "receive_pure_us", 18);
  add_column("Send Overlap(%)", "send_overlap_percent", 18);
  add_column("Send Pure(us)", "send_pure_us", 18);
  begin_table("# MPI Overlap Test");
  return run(&(struct sweep){.unit = 1, .bytes = two_buffers, .measure = overlap_of_size});
}
