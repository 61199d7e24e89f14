// The one-sided exchange of a fast multipole method: every rank gets the expansions of the boxes around its own from
// whoever has them, or puts its own to whoever needs them, one box an operation, with a fence every so many operations.
//
// A cube of `--boxes` x `--boxes` x `--boxes` boxes, closed in each direction, is cut into pieces, one for each rank of
// a sub-communicator, as near to cubes as their number allows, x running fastest. A box interacts with the children of
// its parent's neighbours, so that a rank needs what lies up to two boxes around its piece. All operations of a
// sub-communicator are one list, by which all its ranks go, as in a public reproducer of the application that ran on
// Aurora (github pmodels/mpich, issue 7263): a rank performs those that are its own, and all of them meet in a fence
// after every `--ops` of the list. `--list turns` deals the list out, an operation of each rank in turn; in `--list
// ranks` all operations of a rank stand together.
//
// Differs from the application: one level of one tree, all expansions of one size. Their memory is the host's, or with
// `--memory` a GPU's, as the application's is. The skeleton of it is core/motif/workload/fmm.cpp.
#include <stdint.h>

#include "../benchmark/benchmark.h"

enum what { get, put };

static struct {
  int what, boxes, terms, ops, groups, by_ranks, check;
  const char* json;
} given = {get, 16, 66, 2000, 1, 0, 1, NULL};

static MPI_Comm group;
static int place, places;  // in the group
static int sides[3];       // ranks along each axis

// Of a rank: where its piece begins and ends.
struct piece {
  int first[3], last[3];
};

// Boxes of a rank's surroundings, counted in the order of each_around; which of whose boxes it is.
struct around {
  int number, owner, its;
};

struct operation {
  int rank, here, there;  // with whom; numbers of boxes in the own memory and in its
};

static struct operation* operations;
static int operation_count, operation_room, around_count;

// --- The boxes

// As near to a cube as the ranks allow; larger sides first.
static void cut(int ranks) {
  long best = 0;
  for (int z = 1; (long)z * z * z <= ranks; ++z) {
    for (int y = z; ranks % z == 0 && (long)y * y <= ranks / z; ++y) {
      if (ranks / z % y != 0) continue;
      const int x = ranks / z / y;
      const long surface = (long)x * y + (long)y * z + (long)z * x;
      if (best != 0 && surface >= best) continue;
      best = surface;
      sides[0] = x, sides[1] = y, sides[2] = z;
    }
  }
}

static int begin_of(int part, int axis) { return (int)((long)part * given.boxes / sides[axis]); }

static struct piece piece_of(int rank) {
  const int at[3] = {rank % sides[0], rank / sides[0] % sides[1], rank / sides[0] / sides[1]};
  struct piece piece;
  for (int axis = 0; axis < 3; ++axis) {
    piece.first[axis] = begin_of(at[axis], axis);
    piece.last[axis] = begin_of(at[axis] + 1, axis);
  }
  return piece;
}

static int part_with(int box, int axis) {
  int part = (int)((long)box * sides[axis] / given.boxes);
  while (begin_of(part + 1, axis) <= box) ++part;
  return part;
}

static int number_in(const struct piece* piece, const int* box) {
  const int width[2] = {piece->last[0] - piece->first[0], piece->last[1] - piece->first[1]};
  return ((box[2] - piece->first[2]) * width[1] + box[1] - piece->first[1]) * width[0] + box[0] - piece->first[0];
}

static int size_of(const struct piece* piece) {
  return (piece->last[0] - piece->first[0]) * (piece->last[1] - piece->first[1]) * (piece->last[2] - piece->first[2]);
}

// Calls `found` for each box up to two around the rank's piece, x running fastest.
static void each_around(int rank, void (*found)(int rank, const struct around* box)) {
  const struct piece piece = piece_of(rank);
  struct around next = {0, 0, 0};
  for (int z = piece.first[2] - 2; z < piece.last[2] + 2; ++z) {
    for (int y = piece.first[1] - 2; y < piece.last[1] + 2; ++y) {
      const int across = z >= piece.first[2] && z < piece.last[2] && y >= piece.first[1] && y < piece.last[1];
      for (int x = piece.first[0] - 2; x < piece.last[0] + 2; ++x) {
        if (across && x == piece.first[0]) x = piece.last[0];
        const int box[3] = {(x + given.boxes) % given.boxes, (y + given.boxes) % given.boxes,
                            (z + given.boxes) % given.boxes};
        next.owner = (part_with(box[2], 2) * sides[1] + part_with(box[1], 1)) * sides[0] + part_with(box[0], 0);
        const struct piece theirs = piece_of(next.owner);
        next.its = number_in(&theirs, box);
        found(rank, &next);
        ++next.number;
      }
    }
  }
}

static void count_around(int rank, const struct around* box) {
  (void)rank, (void)box;
  ++around_count;
}

static void add(struct operation operation) {
  if (operation_count == operation_room) {
    operation_room = operation_room > 0 ? 2 * operation_room : 1024;
    operations = realloc(operations, (size_t)operation_room * sizeof *operations);
    if (operations == NULL) {
      fprintf(stderr, "rank %d: there is not enough memory for its operations\n", my_rank);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  operations[operation_count++] = operation;
}

static void add_get(int rank, const struct around* box) {
  (void)rank;
  if (box->owner != place) add((struct operation){box->owner, box->number, box->its});
}

static void add_put(int rank, const struct around* box) {
  if (box->owner == place && rank != place) add((struct operation){rank, box->its, box->number});
}

// --- Expansions

// No two boxes of the cube have a number in common.
static double value_of(int rank, int number, int term) { return ((double)rank * 1e6 + number) * 1024 + term % 1024; }

static size_t box_bytes(void) { return (size_t)given.terms * 2 * sizeof(double); }

static double* own;     // expansions of the own piece
static double* others;  // and of what is around it
static double* found;   // the latter where the host may read them
static long wrong;

static double* expansions_for(int boxes) {
  if (buffers_in == 'H') return memory_for((size_t)boxes, box_bytes());
  return place_buffer((size_t)boxes * box_bytes());
}

static void fill_own(void) {
  const struct piece piece = piece_of(place);
  const size_t bytes = (size_t)size_of(&piece) * box_bytes();
  double* const values = (double*)on_host((char*)own, bytes, 0);
  for (int box = 0; box < size_of(&piece); ++box)
    for (int term = 0; term < 2 * given.terms; ++term)
      values[(size_t)box * 2 * (size_t)given.terms + (size_t)term] = value_of(my_rank, box, term);
  back_to_buffer((char*)own, (char*)values, bytes);
}

static void check_one(int rank, const struct around* box) {
  (void)rank;
  if (box->owner == place) return;
  const double* values = found + (size_t)box->number * 2 * (size_t)given.terms;
  const int owner = my_rank - place + box->owner;
  for (int term = 0; term < 2 * given.terms; ++term) wrong += values[term] != value_of(owner, box->its, term);
}

static void check_all(void) {
  found = (double*)on_host((char*)others, (size_t)around_count * box_bytes(), 1);
  each_around(place, check_one);
  if (found != others) free(found);
}

// --- The exchange

// Where each of the own operations stands in the group's list. The list has `all`.
static int64_t* positions(int64_t* all) {
  int* counts = memory_for((size_t)places, sizeof *counts);
  MPI_Allgather(&operation_count, 1, MPI_INT, counts, 1, MPI_INT, group);
  int64_t* at = memory_for((size_t)operation_count, sizeof *at);
  int64_t before = 0;  // of ranks with smaller numbers, or in earlier turns
  *all = 0;
  for (int rank = 0; rank < places; ++rank) {
    if (rank < place) before += counts[rank];
    *all += counts[rank];
  }
  for (int i = 0; i < operation_count; ++i) {
    at[i] = before + i;
    if (given.by_ranks) continue;
    at[i] = i > 0 ? at[i - 1] : 0;
    for (int rank = 0; rank < places; ++rank) {
      if (i > 0 && rank >= place) at[i] += counts[rank] > i - 1;
      if (rank < place) at[i] += counts[rank] > i;
    }
  }
  free(counts);
  return at;
}

static void perform(const struct operation* operation, MPI_Win window) {
  const MPI_Aint there = (MPI_Aint)operation->there * given.terms;
  double* here = (given.what == get ? others : own) + (size_t)operation->here * 2 * (size_t)given.terms;
  if (given.what == get)
    MPI_Get(here, given.terms, MPI_C_DOUBLE_COMPLEX, operation->rank, there, given.terms, MPI_C_DOUBLE_COMPLEX, window);
  else
    MPI_Put(here, given.terms, MPI_C_DOUBLE_COMPLEX, operation->rank, there, given.terms, MPI_C_DOUBLE_COMPLEX, window);
}

// What it took this rank; how many fences there were.
static double exchange(MPI_Win window, int64_t* all, int64_t* fences) {
  int64_t* at = positions(all);
  int next = 0;
  *fences = 0;
  MPI_Win_fence(0, window);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  for (int64_t end = given.ops; end - given.ops < *all; end += given.ops, ++*fences) {
    for (; next < operation_count && at[next] < end; ++next) perform(&operations[next], window);
    MPI_Win_fence(0, window);
  }
  const double took = MPI_Wtime() - begun;
  free(at);
  return took;
}

static void report(double longest, int64_t all, int64_t fences) {
  printf("%s of %zu bytes in %d groups of %d ranks (%d x %d x %d): %lld operations and %lld fences each, %.6f s\n",
         given.what == get ? "gets" : "puts", box_bytes(), given.groups, places, sides[0], sides[1], sides[2],
         (long long)all, (long long)fences, longest);
  if (given.json == NULL) return;
  FILE* file = fopen(given.json, "w");
  if (file == NULL) {
    fprintf(stderr, "--json: %s cannot be written\n", given.json);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  fprintf(file,
          "{\"what\": \"%s\", \"ranks\": %d, \"groups\": %d, \"boxes\": %d, \"bytes\": %zu, \"ops\": %d, "
          "\"list\": \"%s\", \"memory\": \"%s\", \"operations\": %lld, \"fences\": %lld, \"time_s\": %.9f, \"wrong\": "
          "%ld, \"right\": %d}\n",
          given.what == get ? "get" : "put", rank_count, given.groups, given.boxes, box_bytes(), given.ops,
          given.by_ranks ? "ranks" : "turns", buffers_in == 'H' ? "host" : accelerator_names[options.accelerator],
          (long long)all, (long long)fences, longest, wrong, given.check && wrong == 0);
  fclose(file);
}

// --- What is asked for

__attribute__((noreturn)) static void help(const char* name) {
  if (my_rank == 0)
    printf(
        "%s [OPTIONS]\n"
        "  --what get|put       which operation (get)\n"
        "  --boxes N            along each side of a group's cube (16)\n"
        "  --terms N            complex numbers in a box's expansion (66, of order 10)\n"
        "  --ops N              operations of a group between two fences (2000)\n"
        "  --list turns|ranks   an operation of each rank in turn, or all of a rank together (turns)\n"
        "  --groups N           sub-communicators, of ranks with numbers in a row (1)\n"
        "  --memory TYPE        of the expansions: host, or a GPU's by cuda, rocm or sycl (host)\n"
        "  --check 0|1          0: data that arrives is not checked (1)\n"
        "  --json FILE          figures for other programs\n",
        name);
  MPI_Finalize();
  exit(0);
}

static int choice_of(const char* option, const char* text, const char* first, const char* second) {
  if (strcmp(text, first) == 0) return 0;
  if (strcmp(text, second) == 0) return 1;
  char sentence[80];
  snprintf(sentence, sizeof sentence, "accepted is %s or %s", first, second);
  refuse(option, sentence);
}

static void read_memory(const char* text) {
  static const enum accelerator_kind kinds[] = {no_accelerator, cuda_accelerator, rocm_accelerator, sycl_accelerator};
  for (int at = 0; at < 4; ++at) {
    if (strcmp(text, at == 0 ? "host" : accelerator_names[kinds[at]]) != 0) continue;
    options.accelerator = kinds[at];
    options.from = options.to = at == 0 ? 'H' : 'D';
    return;
  }
  refuse("--memory", "accepted is host, cuda, rocm or sycl");
}

static void read_arguments(int argc, char** argv) {
  static const struct option names[] = {{"what", required_argument, NULL, 'w'},
                                        {"boxes", required_argument, NULL, 'b'},
                                        {"terms", required_argument, NULL, 't'},
                                        {"ops", required_argument, NULL, 'o'},
                                        {"list", required_argument, NULL, 'l'},
                                        {"groups", required_argument, NULL, 'g'},
                                        {"check", required_argument, NULL, 'c'},
                                        {"json", required_argument, NULL, 'j'},
                                        {"memory", required_argument, NULL, 'm'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, ":h", names, NULL)) != -1;) {
    if (option == 'w') given.what = choice_of("--what", optarg, "get", "put");
    if (option == 'b') given.boxes = whole("--boxes", optarg, 2);
    if (option == 't') given.terms = whole("--terms", optarg, 1);
    if (option == 'o') given.ops = whole("--ops", optarg, 1);
    if (option == 'l') given.by_ranks = choice_of("--list", optarg, "turns", "ranks");
    if (option == 'g') given.groups = whole("--groups", optarg, 1);
    if (option == 'c') given.check = choice_of("--check", optarg, "0", "1");
    if (option == 'j') given.json = optarg;
    if (option == 'm') read_memory(optarg);
    if (option == 'h') help(argv[0]);
    if (option == ':') refuse(argv[optind - 1], "a value is missing");
    if (option == '?') refuse(argv[optind - 1], "no such option; --help lists them");
  }
  if (optind < argc) refuse(argv[optind], "no such argument; --help lists the options");
  if (rank_count % given.groups != 0) refuse("--groups", "accepted is a number that divides the ranks");
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  read_arguments(argc, argv);
  places = rank_count / given.groups;
  MPI_Comm_split(MPI_COMM_WORLD, my_rank / places, my_rank, &group);
  MPI_Comm_rank(group, &place);
  cut(places);
  if (given.boxes < 2 * sides[0] || given.boxes > 1024)
    refuse("--boxes", "accepted is twice the ranks along the longest side of a group's grid to 1024");

  if (given.what == get) each_around(place, add_get);
  for (int rank = 0; given.what == put && rank < places; ++rank) each_around(rank, add_put);
  each_around(place, count_around);
  const struct piece piece = piece_of(place);
  begin_accelerator(1);
  own = expansions_for(size_of(&piece));
  others = expansions_for(around_count);
  fill_own();
  const size_t exposed = (size_t)(given.what == get ? size_of(&piece) : around_count) * box_bytes();
  MPI_Win window;
  MPI_Win_create(given.what == get ? own : others, (MPI_Aint)exposed, 2 * (int)sizeof(double), MPI_INFO_NULL, group,
                 &window);
  int64_t all, fences;
  double longest, took = exchange(window, &all, &fences);
  MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (given.check) check_all();
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (my_rank == 0) report(longest, all, fences);
  if (wrong > 0 && my_rank == 0) fprintf(stderr, "fmm: data that arrived was wrong, %ld numbers\n", wrong);
  MPI_Win_free(&window);
  free_buffer((char*)own);
  free_buffer((char*)others);
  free(operations);
  MPI_Comm_free(&group);
  MPI_Finalize();
  return wrong > 0;
}
