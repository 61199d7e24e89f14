// What the benchmarks share: options, the table and the data check. Options and columns are those of the OSU
// microbenchmarks, so that what reads their output reads this. Defaults differ: under dryfly time is virtual and
// without noise, so a few iterations say what a thousand would. All times are the program's own MPI_Wtime.
#pragma once

#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
  size_t least, most;  // bytes of a message
  int iterations, warmup, window, pairs, digits;
  int validate, full, each;
  size_t memory;  // bytes for the buffers of a rank
};

static struct options options;
static int my_rank;
static int rank_count;
static int any_wrong;  // on rank 0

// A sentence on standard error, from one rank; the same input is wrong on all of them.
__attribute__((noreturn)) static inline void refuse(const char* what, const char* sentence) {
  if (my_rank == 0) fprintf(stderr, "%s: %s\n", what, sentence);
  MPI_Finalize();
  exit(2);
}

static inline size_t number(const char* text, size_t least, size_t most, const char** rest) {
  char* end;
  unsigned long long value = strtoull(text, &end, 10);
  const char* units = "KMG";
  const char* unit = *end != '\0' ? strchr(units, *end) : NULL;
  for (const char* at = units; unit != NULL && at <= unit; ++at) value *= 1024;
  *rest = unit != NULL ? end + 1 : end;
  return end != text && text[0] != '-' && value >= least && value <= most ? (size_t)value : most + 1;
}

static inline int whole(const char* option, const char* text, int least) {
  const char* rest;
  size_t value = number(text, (size_t)least, 1 << 30, &rest);
  if (*rest != '\0' || value > 1 << 30) {
    char sentence[80];
    snprintf(sentence, sizeof sentence, "accepted is a whole number from %d to 2^30", least);
    refuse(option, sentence);
  }
  return (int)value;
}

static inline void read_sizes(const char* text) {
  const char* rest;
  const size_t largest = (size_t)1 << 30;
  size_t first = number(text, 0, largest, &rest), second = first;
  if (*rest == ':')
    second = number(rest + 1, 1, largest, &rest);
  else
    first = options.least;
  if (*rest != '\0' || first > largest || second > largest || second < first)
    refuse("-m", "accepted is MAX or MIN:MAX in bytes, at most 2^30, such as 1:65536");
  options.least = first > options.least ? first : options.least;  // not below what the benchmark can send
  options.most = second;
}

// With --each: what every timed repetition of the present size took on this rank.
static double* each;

static inline void begin_each(void) {
  if (options.each) each = calloc((size_t)options.iterations, sizeof *each);
}

static inline void note_each(int repetition, double value) {
  if (options.each && repetition >= 0) each[repetition] = value;
}

// Behind the row, on rank 0: the figures of `values`, which others read; their mean (of rates the harmonic one) is the
// row's figure.
static inline void print_each(size_t size, const double* values) {
  if (!options.each) return;
  if (my_rank == 0) {
    printf("# each %zu", size);
    for (int repetition = 0; repetition < options.iterations; ++repetition)
      printf(" %.*f", options.digits, values[repetition]);
    printf("\n");
    fflush(stdout);
  }
  free(each);
}

static inline void print_help(const char* name, const char* also) {
  if (my_rank != 0) return;
  printf(
      "%s [OPTIONS]\n"
      "  -m, --message-size [MIN:]MAX  sizes in bytes, doubling (default %zu:%zu)\n"
      "  -i, --iterations N            timed repetitions of each size (%d)\n"
      "  -x, --warmup N                repetitions before them (%d)\n"
      "  -c, --validation              check the data that arrives\n"
      "      --each                    also every repetition, in a comment behind the row\n"
      "  -M, --mem-limit BYTES         for the buffers of a rank; larger sizes are left out (%zu)\n"
      "      --digits N                digits after the point (%d)\n%s",
      name, options.least, options.most, options.iterations, options.warmup, options.memory, options.digits, also);
}

static const char* const help_of_window = "  -W, --window-size N           messages under way at once (64)\n";
static const char* const help_of_full = "  -f, --full                    also the fastest and the slowest rank\n";

// `accepted` are the letters of the options that not every benchmark has: W (window), f (full), p (pairs), e (each).
static inline void read_options(int argc, char** argv, const char* accepted, const char* help) {
  static const struct option names[] = {{"message-size", required_argument, NULL, 'm'},
                                        {"iterations", required_argument, NULL, 'i'},
                                        {"warmup", required_argument, NULL, 'x'},
                                        {"window-size", required_argument, NULL, 'W'},
                                        {"validation", no_argument, NULL, 'c'},
                                        {"full", no_argument, NULL, 'f'},
                                        {"pairs", required_argument, NULL, 'p'},
                                        {"mem-limit", required_argument, NULL, 'M'},
                                        {"digits", required_argument, NULL, 'D'},
                                        {"each", no_argument, NULL, 'e'},
                                        {"accelerator", required_argument, NULL, 'd'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  opterr = 0;
  for (int option; (option = getopt_long(argc, argv, ":m:i:x:W:cfp:M:d:h", names, NULL)) != -1;) {
    const char text[] = {'-', (char)(option == '?' || option == ':' ? optopt : option), '\0'};
    if (strchr("Wfpe", option) != NULL && strchr(accepted, option) == NULL) refuse(text, "not of this benchmark");
    switch (option) {
      case 'm':
        read_sizes(optarg);
        break;
      case 'i':
        options.iterations = whole(text, optarg, 1);
        break;
      case 'x':
        options.warmup = whole(text, optarg, 0);
        break;
      case 'W':
        options.window = whole(text, optarg, 1);
        break;
      case 'p':
        options.pairs = whole(text, optarg, 1);
        break;
      case 'M':
        options.memory = (size_t)whole(text, optarg, 1);
        break;
      case 'D':
        options.digits = whole(text, optarg, 0);
        break;
      case 'c':
        options.validate = 1;
        break;
      case 'f':
        options.full = 1;
        break;
      case 'e':
        options.each = 1;
        break;
      case 'd':
        refuse(text, "there are no accelerators here: buffers are in the host's memory");
      case 'h':
        print_help(argv[0], help);
        MPI_Finalize();
        exit(0);
      case ':':
        refuse(argv[optind - 1], "a value is missing");
      default:
        refuse(argv[optind - 1], "no such option; -h lists them");
    }
  }
  if (optind < argc) refuse(argv[optind], "only options are accepted; -h lists them");
}

static inline void begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  if (rank_count < 2) refuse((*argv)[0], "at least 2 ranks are needed");
}

// 0 when all is well; 1 when data was wrong.
static inline int finish(void) {
  MPI_Bcast(&any_wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (any_wrong && my_rank == 0) fprintf(stderr, "data that arrived was wrong (rows with Fail)\n");
  MPI_Finalize();
  return any_wrong;
}

static inline size_t next_size(size_t size) { return size == 0 ? 1 : 2 * size; }

static inline void* memory_for(size_t count, size_t each_bytes) {
  void* memory = calloc(count > 0 ? count : 1, each_bytes);
  if (memory == NULL) {
    fprintf(stderr, "rank %d: there is not enough memory for %zu bytes\n", my_rank, count * each_bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

static inline char* buffer_of(size_t bytes) { return memset(memory_for(bytes, 1), 1, bytes); }

// False, with a remark in the table, when the buffers of this size would be larger than the limit.
static inline int fits(size_t size, size_t bytes) {
  if (bytes <= options.memory) return 1;
  if (my_rank == 0) printf("# sizes from %zu on are left out: buffers of %zu bytes a rank (-M)\n", size, bytes);
  return 0;
}

// Bytes that differ with the place, the sender, the receiver and the repetition.
static inline char byte_of(unsigned seed, size_t at) {
  return (char)((seed * 31u + (unsigned)at * 7u + (unsigned)(at >> 8) * 13u) & 0xff);
}

static inline unsigned seed_of(int source, int target, int repetition) {
  return (unsigned)source * 53u + (unsigned)target * 101u + (unsigned)(repetition + 1000) * 17u;
}

static inline void fill(char* buffer, size_t bytes, unsigned seed) {
  for (size_t at = 0; at < bytes; ++at) buffer[at] = byte_of(seed, at);
}

// How many bytes are not what `fill` wrote; the buffer is emptied, so that nothing old can pass next time.
static inline long wrong_bytes(char* buffer, size_t bytes, unsigned seed) {
  long wrong = 0;
  for (size_t at = 0; at < bytes; ++at) wrong += buffer[at] != byte_of(seed, at);
  memset(buffer, 0, bytes);
  return wrong;
}

// The end of a row, on rank 0: the verdict when data is checked.
static inline void end_row(long wrong) {
  if (options.validate) printf("%18s", wrong ? "Fail" : "Pass");
  if (options.validate && wrong) any_wrong = 1;
  printf("\n");
  fflush(stdout);
}

static inline void end_head(void) {
  if (options.validate) printf("%18s", "Validation");
  printf("\n");
}

static inline long all_wrong(long mine) {
  long sum = 0;
  if (options.validate) MPI_Reduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  return sum;
}
