// Options of the benchmarks: OSU's names where OSU has them. What is wrong is refused by one sentence and exit status 2
// before anything is timed.
#pragma once

#include <getopt.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum window_kind { win_allocate, win_create, win_dynamic };
enum sync_kind { sync_flush, sync_flush_local, sync_lock, sync_lock_all, sync_pscw, sync_fence };

enum accelerator_kind { no_accelerator, cuda_accelerator, rocm_accelerator, managed_accelerator, sycl_accelerator };

static const char* const accelerator_names[] = {"none", "cuda", "rocm", "managed", "sycl"};
static const char* const window_names[] = {"allocate", "create", "dynamic"};
static const char* const sync_names[] = {"flush", "flush_local", "lock", "lock_all", "pscw", "fence"};

struct options {
  size_t least, most;  // bytes of a message
  int iterations, warmup, window, pairs, digits;
  int validate;  // -c: what is timed is checked
  int check;     // else every size is checked once, after all have been timed
  int full, each, slowest;
  int send_threads, receive_threads;
  enum window_kind win;
  enum sync_kind sync;
  int interval;   // one-sided operations between two synchronisations; 0: as the benchmark usually does
  size_t memory;  // bytes for the buffers of a rank
  const char* json;
  enum accelerator_kind accelerator;
  char from, to;  // where buffers of senders and of receivers are: H, D or M
  int in_pairs;   // so that they may differ
};

static struct options options;
static const char* program;
static int my_rank;
static int rank_count;

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

static inline int one_of(const char* option, const char* text, const char* const* names, int count) {
  char sentence[120] = "accepted is";
  for (int at = 0; at < count; ++at) {
    if (strcmp(text, names[at]) == 0) return at;
    const char* between = at == 0 ? " " : at + 1 < count ? ", " : " or ";
    const size_t used = strlen(sentence);
    snprintf(sentence + used, sizeof sentence - used, "%s%s", between, names[at]);
  }
  refuse(option, sentence);
}

// A receiving thread answers one sending thread, so that the data of each round is known.
static inline void read_threads(const char* text) {
  const char* rest;
  const size_t most = 64;
  size_t first = number(text, 1, most, &rest), second = first;
  if (*rest == ':')
    second = number(rest + 1, 1, most, &rest);
  else
    first = 1;
  if (*rest != '\0' || first > most || second > most || second % first != 0)
    refuse("-t", "accepted is R or S:R, 1 to 64 threads, R a multiple of S, such as 4 or 2:4");
  options.send_threads = (int)first;
  options.receive_threads = (int)second;
}

static inline void print_help(const char* name, const char* also) {
  if (my_rank != 0) return;
  printf(
      "%s [OPTIONS]\n"
      "  -m, --message-size [MIN:]MAX  sizes in bytes, doubling (default %zu:%zu)\n"
      "  -i, --iterations N            timed repetitions of each size (%d)\n"
      "  -x, --warmup N                repetitions before them (%d)\n"
      "  -c, --validation              check the data of every repetition, and say so in each row\n"
      "      --check 0|1               without -c: check the data of each size once, after all have been timed (1)\n"
      "      --json FILE               the table for other programs\n"
      "      --each                    also every repetition, in a comment behind the row\n"
      "  -M, --mem-limit BYTES         for the buffers of a rank; larger sizes are left out (%zu)\n"
      "      --digits N                digits after the point (%d)\n%s",
      name, options.least, options.most, options.iterations, options.warmup, options.memory, options.digits, also);
}

#define HELP_OF_WINDOW "  -W, --window-size N           messages under way at once (64)\n"
static const char* const help_of_accelerator =
    "  -d, --accelerator TYPE        buffers on GPUs: cuda, rocm, sycl or managed\n";
#define HELP_OF_PLACES                                                             \
  "  -d, --accelerator TYPE [S R]  buffers on GPUs: cuda, rocm, sycl or managed; " \
  "sender's and receiver's on host H, device D or managed M (D D)\n"
static const char* const help_of_full = "  -f, --full                    also the fastest and the slowest rank\n";

// Behind the options of pairs with -d: where senders and receivers have their buffers, as OSU has it.
static inline void read_places(int argc, char** argv) {
  options.from = options.to = options.accelerator == no_accelerator        ? 'H'
                              : options.accelerator == managed_accelerator ? 'M'
                                                                           : 'D';
  if (optind == argc) return;
  if (options.accelerator == no_accelerator || !options.in_pairs)
    refuse(argv[optind], "only options are accepted; -h lists them");
  const char* const accepted =
      "accepted behind the options are two of H, D and M: buffers of the sender and of the receiver";
  for (int at = optind; at < argc; ++at)
    if (at >= optind + 2 || strlen(argv[at]) != 1 || strchr("HDM", *argv[at]) == NULL) refuse(argv[at], accepted);
  if (argc - optind != 2) refuse(argv[optind], accepted);
  options.from = *argv[optind];
  options.to = *argv[optind + 1];
}

// `accepted` are the letters of the options that not every benchmark has: W (window), f (full), p (pairs), e (each),
// S (slowest), t (threads), w (MPI window), s (synchronisation), n (interval), d (accelerator).
static inline void read_options(int argc, char** argv, const char* accepted, const char* help) {
  static const struct option names[] = {{"message-size", required_argument, NULL, 'm'},
                                        {"iterations", required_argument, NULL, 'i'},
                                        {"warmup", required_argument, NULL, 'x'},
                                        {"window-size", required_argument, NULL, 'W'},
                                        {"validation", no_argument, NULL, 'c'},
                                        {"check", required_argument, NULL, 'k'},
                                        {"json", required_argument, NULL, 'j'},
                                        {"full", no_argument, NULL, 'f'},
                                        {"pairs", required_argument, NULL, 'p'},
                                        {"slowest", required_argument, NULL, 'S'},
                                        {"num-threads", required_argument, NULL, 't'},
                                        {"win-option", required_argument, NULL, 'w'},
                                        {"sync-option", required_argument, NULL, 's'},
                                        {"fence-interval", required_argument, NULL, 'n'},
                                        {"mem-limit", required_argument, NULL, 'M'},
                                        {"digits", required_argument, NULL, 'D'},
                                        {"each", no_argument, NULL, 'e'},
                                        {"accelerator", required_argument, NULL, 'd'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  opterr = 0;
  for (int option, which = -1; (option = getopt_long(argc, argv, ":m:i:x:W:cfp:t:w:s:M:d:h", names, &which)) != -1;
       which = -1) {
    const char text[] = {'-', (char)(option == '?' || option == ':' ? optopt : option), '\0'};
    char name[32];
    snprintf(name, sizeof name, "%s%s", which >= 0 ? "--" : text, which >= 0 ? names[which].name : "");
    if (strchr("WfpeStwsnd", option) != NULL && strchr(accepted, option) == NULL) refuse(name, "not of this benchmark");
    switch (option) {
      case 'm':
        read_sizes(optarg);
        break;
      case 'i':
        options.iterations = whole(name, optarg, 1);
        break;
      case 'x':
        options.warmup = whole(name, optarg, 0);
        break;
      case 'W':
        options.window = whole(name, optarg, 1);
        break;
      case 'p':
        options.pairs = whole(name, optarg, 1);
        break;
      case 'S':
        options.slowest = whole(name, optarg, 1);
        break;
      case 't':
        read_threads(optarg);
        break;
      case 'w':
        options.win = (enum window_kind)one_of(name, optarg, window_names, 3);
        break;
      case 's':
        options.sync = (enum sync_kind)one_of(name, optarg, sync_names, 6);
        break;
      case 'n':
        options.interval = whole(name, optarg, 1);
        break;
      case 'M':
        options.memory = (size_t)whole(name, optarg, 1);
        break;
      case 'D':
        options.digits = whole(name, optarg, 0);
        break;
      case 'c':
        options.validate = 1;
        break;
      case 'k':
        options.check = one_of(name, optarg, (const char* const[]){"0", "1"}, 2);
        break;
      case 'j':
        options.json = optarg;
        break;
      case 'f':
        options.full = 1;
        break;
      case 'e':
        options.each = 1;
        break;
      case 'd':
        options.accelerator = (enum accelerator_kind)(1 + one_of(name, optarg, accelerator_names + 1, 4));
        break;
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
  read_places(argc, argv);
}
