// What the benchmarks share: the table, its JSON and the data check. Options and columns are those of the OSU
// microbenchmarks, so that what reads their output reads this. Defaults differ: under dryfly time is virtual and
// without noise, so a few iterations say what a thousand would. All times are the program's own MPI_Wtime.
//
// Data is checked once for each size, after all sizes have been timed: the figures are those of a run without a check.
// With -c it is what is timed that is checked, between the repetitions, and each row has its verdict.
#pragma once

#include <stdarg.h>

#include "accelerator.h"
#include "json.h"

enum { most_columns = 8, most_sizes = 40 };

struct column {
  const char *title, *key;  // in the table, in JSON
  int width, whole;
};

static struct {
  struct column columns[most_columns];
  int count;
  int sizeless;  // one row, without a size
  int rows;
  int checking;                    // after the timing
  size_t wrong_sizes[most_sizes];  // on rank 0
  int wrong;
} table;

static int any_wrong;  // on rank 0

static inline void* memory_for(size_t count, size_t each_bytes) {
  void* memory = calloc(count > 0 ? count : 1, each_bytes);
  if (memory == NULL) {
    fprintf(stderr, "rank %d: there is not enough memory for %zu bytes\n", my_rank, count * each_bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

static inline char* buffer_of(size_t bytes) {
  if (buffers_in == 'H') return memset(memory_for(bytes, 1), 1, bytes);
  char *buffer = place_buffer(bytes), *host = on_host(buffer, bytes, 0);
  back_to_buffer(buffer, memset(host, 1, bytes), bytes);
  return buffer;
}

static inline void free_buffer(char* buffer) {
  if (buffers_in == 'H')
    free(buffer);
  else
    check_accelerator("giving memory back", accelerator.give_back(buffer));
}

// The name of every rank's host, on rank 0.
static inline char* gather_hosts(void) {
  char name[MPI_MAX_PROCESSOR_NAME] = {0};
  int length;
  MPI_Get_processor_name(name, &length);
  char* names = my_rank == 0 ? memory_for((size_t)rank_count, sizeof name) : NULL;
  MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  return names;
}

static inline const char* host_of(const char* names, int rank) { return names + (size_t)rank * MPI_MAX_PROCESSOR_NAME; }

static inline int by_name(const void* a, const void* b) { return strcmp(a, b); }

// --- The table

static inline void add_column(const char* title, const char* key, int width) {
  table.columns[table.count++] = (struct column){.title = title, .key = key, .width = width};
}

static inline void write_options(void) {
  fprintf(json, ",\n  \"options\": {\"message_size\": [%zu, %zu], \"iterations\": %d, \"warmup\": %d", options.least,
          options.most, options.iterations, options.warmup);
  if (options.window > 0) fprintf(json, ", \"window_size\": %d", options.window);
  if (options.pairs > 0) fprintf(json, ", \"pairs\": %d", options.pairs);
  if (options.send_threads > 0) fprintf(json, ", \"threads\": [%d, %d]", options.send_threads, options.receive_threads);
  if (options.interval > 0)
    fprintf(json, ", \"win\": \"%s\", \"sync\": \"%s\", \"fence_interval\": %d", window_names[options.win],
            sync_names[options.sync], options.interval);
  if (options.accelerator != no_accelerator)
    fprintf(json, ", \"accelerator\": \"%s\", \"buffers\": \"%c %c\"", accelerator_names[options.accelerator],
            options.from, options.to);
  fprintf(json, ", \"validation\": %s, \"check\": %s}", options.validate ? "true" : "false",
          options.check ? "true" : "false");
  fprintf(json, ",\n  \"columns\": [");
  if (!table.sizeless) fprintf(json, "\"size\"");
  for (int at = 0; at < table.count; ++at)
    fprintf(json, "%s\"%s\"", at > 0 || !table.sizeless ? ", " : "", table.columns[at].key);
  fprintf(json, "],\n  \"rows\": [");
}

// On all ranks, when the columns are known: the file of --json is opened, and the head printed.
__attribute__((format(printf, 1, 2))) static inline void begin_table(const char* title, ...) {
  open_json(options.json);
  if (my_rank != 0) return;
  if (json != NULL) write_options();
  va_list values;
  va_start(values, title);
  vprintf(title, values);
  va_end(values);
  if (options.accelerator != no_accelerator)
    printf("\n# Send Buffer on %s and Receive Buffer on %s", name_of_place(options.from), name_of_place(options.to));
  printf("\n%-10s", table.sizeless ? "#" : "# Size");
  for (int at = 0; at < table.count; ++at) printf("%*s", table.columns[at].width, table.columns[at].title);
  if (options.validate) printf("%18s", "Validation");
  printf("\n");
}

static inline void note_wrong(size_t size) {
  any_wrong = 1;
  if (table.wrong < most_sizes) table.wrong_sizes[table.wrong++] = size;
}

// Appended to the present row in JSON. False without --json.
static inline int json_more(const char* key) {
  if (json == NULL || table.checking) return 0;
  fprintf(json, ", \"%s\": ", key);
  return 1;
}

static inline void write_row(size_t size, const double* figures) {
  fprintf(json, "%s\n    {", table.rows > 0 ? "}," : "");
  if (!table.sizeless) fprintf(json, "\"size\": %zu", size);
  for (int at = 0; at < table.count; ++at) {
    fprintf(json, "%s\"%s\": ", at > 0 || !table.sizeless ? ", " : "", table.columns[at].key);
    json_number(figures[at]);
  }
}

// On rank 0: a figure for each column, and the verdict when the data of the repetitions was checked.
static inline void print_row(size_t size, const double* figures, long wrong) {
  if (my_rank != 0) return;
  if (options.validate && wrong) note_wrong(size);
  if (table.checking) return;
  if (table.sizeless)
    printf("%-10s", "");
  else
    printf("%-10zu", size);
  for (int at = 0; at < table.count; ++at)
    printf("%*.*f", table.columns[at].width, table.columns[at].whole ? 0 : options.digits, figures[at]);
  if (options.validate) printf("%18s", wrong ? "Fail" : "Pass");
  printf("\n");
  fflush(stdout);
  if (json != NULL) write_row(size, figures);
  ++table.rows;
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
  if (my_rank == 0 && json_more("each")) {
    for (int repetition = 0; repetition < options.iterations; ++repetition) {
      fprintf(json, repetition == 0 ? "[" : ", ");
      json_number(values[repetition]);
    }
    fprintf(json, "]");
  }
  free(each);
}

// --- The data check

// Bytes that differ with the place, the sender, the receiver and the repetition.
static inline char byte_of(unsigned seed, size_t at) {
  return (char)((seed * 31u + (unsigned)at * 7u + (unsigned)(at >> 8) * 13u) & 0xff);
}

static inline unsigned seed_of(int source, int target, int repetition) {
  return (unsigned)source * 53u + (unsigned)target * 101u + (unsigned)(repetition + 1000) * 17u;
}

static inline void fill(char* buffer, size_t bytes, unsigned seed) {
  char* const host = on_host(buffer, bytes, 0);
  for (size_t at = 0; at < bytes; ++at) host[at] = byte_of(seed, at);
  back_to_buffer(buffer, host, bytes);
}

static inline void clear(char* buffer, size_t bytes) {
  char* const host = on_host(buffer, bytes, 0);
  back_to_buffer(buffer, memset(host, 0, bytes), bytes);
}

// How many bytes are not what `fill` wrote; the buffer is emptied, so that nothing old can pass next time.
static inline long wrong_bytes(char* buffer, size_t bytes, unsigned seed) {
  long wrong = 0;
  char* const host = on_host(buffer, bytes, 1);
  for (size_t at = 0; at < bytes; ++at) wrong += host[at] != byte_of(seed, at);
  back_to_buffer(buffer, memset(host, 0, bytes), bytes);
  return wrong;
}

static inline long all_wrong(long mine) {
  long sum = 0;
  if (options.validate) MPI_Reduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  return sum;
}

// --- Sizes

struct sweep {
  size_t unit;                   // sizes are multiples of it
  size_t (*bytes)(size_t size);  // of a rank's buffers
  void (*measure)(size_t size);  // and print a row
};

// False, with a remark in the table, when the buffers of this size would be larger than the limit.
static inline int fits(size_t size, size_t bytes) {
  if (bytes <= options.memory) return 1;
  if (my_rank == 0 && !table.checking)
    printf("# sizes from %zu on are left out: buffers of %zu bytes a rank (-M)\n", size, bytes);
  return 0;
}

static inline size_t next_size(size_t size) { return size == 0 ? 1 : 2 * size; }

// In a check each message of a window has a buffer of its own; all of them together need no more than these bytes.
static inline int window_of_check(int window, size_t size) {
  const size_t most = (size_t)4 << 20, half = options.memory / 2, bytes = half < most ? half : most;
  const size_t messages = size > 0 ? bytes / size : bytes;
  return (size_t)window <= messages ? window : messages > 0 ? (int)messages : 1;
}

static inline void for_all_sizes(const struct sweep* sweep) {
  const int window = options.window, interval = options.interval;
  const size_t least = table.sizeless ? sweep->unit : options.least, most = table.sizeless ? least : options.most;
  for (size_t size = least; size <= most; size = next_size(size)) {
    if (size % sweep->unit != 0) continue;
    if (table.checking) {
      options.window = window_of_check(window, size);
      options.interval = window_of_check(interval, size);
    }
    if (!fits(size, sweep->bytes(size))) break;
    sweep->measure(size);
  }
  options.window = window;
  options.interval = interval;
}

// The same once more, with data that is compared; nothing of it is timed.
static inline void check_sizes(const struct sweep* sweep) {
  const struct options given = options;
  options.validate = options.iterations = 1;
  options.warmup = options.each = options.slowest = 0;
  table.checking = 1;
  for_all_sizes(sweep);
  table.checking = 0;
  options = given;
  if (my_rank != 0) return;
  printf("# data checked after timing: %s", table.wrong > 0 ? "wrong at" : "right");
  for (int at = 0; at < table.wrong; ++at) printf(" %zu", table.wrong_sizes[at]);
  printf("\n");
  fflush(stdout);
}

// --- Beginning and end

static inline void know_ranks(char** argv) {
  const char* folder = strrchr(argv[0], '/');
  program = folder != NULL ? folder + 1 : argv[0];
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  if (rank_count < 2) refuse(argv[0], "at least 2 ranks are needed");
}

static inline void begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  know_ranks(*argv);
}

// 0 when all is well; 1 when data was wrong or the file of --json could not be written.
static inline int finish(const char* json_path) {
  int status = any_wrong;
  if (my_rank == 0 && !close_json(json_path)) status = 1;
  MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (any_wrong && my_rank == 0) fprintf(stderr, "data that arrived was wrong (rows with Fail, or listed sizes)\n");
  MPI_Finalize();
  return status;
}

static inline void end_table(int checked) {
  if (options.json == NULL) return;
  char* names = gather_hosts();
  if (my_rank != 0) return;
  qsort(names, (size_t)rank_count, MPI_MAX_PROCESSOR_NAME, by_name);
  int nodes = 1;
  for (int rank = 1; rank < rank_count; ++rank) nodes += strcmp(host_of(names, rank - 1), host_of(names, rank)) != 0;
  free(names);
  fprintf(json, "%s\n  ],\n  \"data\": \"%s\",\n  \"wrong_sizes\": [", table.rows > 0 ? "}" : "",
          any_wrong ? "wrong"
          : checked ? "right"
                    : "unchecked");
  for (int at = 0; at < table.wrong; ++at) fprintf(json, "%s%zu", at > 0 ? ", " : "", table.wrong_sizes[at]);
  fprintf(json, "],\n  \"nodes\": %d", nodes);
}

// The whole benchmark, behind its head.
static inline int run(const struct sweep* sweep) {
  for_all_sizes(sweep);
  const int check = options.check && !options.validate && !table.sizeless;  // a barrier has no data
  // Rank 0 has all figures: until then nobody sends what could be in the way of what is timed.
  int all_timed = 1;
  if (check || options.json != NULL) MPI_Bcast(&all_timed, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (check) check_sizes(sweep);
  end_table(check || options.validate);
  return finish(options.json);
}
