/* What a program tells dryfly about its computing: before each piece of work its kind and size. With
 * `dryfly run --compute model` the rank's virtual clock then moves by the time that the simulated machine takes for it,
 * and by nothing else between MPI calls. Outside dryfly, and in its other modes, nothing happens.
 *
 * For C11 and C++, without anything to link: the functions are looked up in the process (older C libraries: -ldl).
 * Work is announced by the thread that called MPI_Init, outside MPI calls. */
#ifndef DRYFLY_WORK_H
#define DRYFLY_WORK_H

#include <dlfcn.h>
#include <stdint.h>

enum {
  DRYFLY_GEMM = 0,       /* C (m x n) := C + A (m x k) B (k x n) */
  DRYFLY_TRSM = 1,       /* a triangular solve, m x m, with n right sides; k counts for nothing */
  DRYFLY_MEMORY = 2,     /* m bytes read or written; n and k count for nothing */
  DRYFLY_ARITHMETIC = 3, /* m operations on what lies in caches; n and k count for nothing */
};
enum { DRYFLY_FP64 = 0, DRYFLY_FP32 = 1, DRYFLY_HALF = 2 }; /* HALF: FP16 and BF16 */

enum {
  DRYFLY_WORK_UNTIMED = 0, /* announcing has no effect */
  DRYFLY_WORK_TIMED = 1,
  DRYFLY_WORK_SKIPPED = 2, /* timed, and the results are not wanted (--skip-numerics): need not be computed */
};

/* To be asked after MPI_Init. */
static inline int dryfly_work_mode_now(void) {
  int (*mode)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "dryfly_work_mode");
  return mode != 0 ? mode() : DRYFLY_WORK_UNTIMED;
}

static inline void dryfly_work_announce(int kind, int precision, int64_t m, int64_t n, int64_t k) {
  static void (*work)(int, int, int64_t, int64_t, int64_t) = 0;
  static int looked_up = 0;
  if (!looked_up) {
    work = (void (*)(int, int, int64_t, int64_t, int64_t))dlsym(RTLD_DEFAULT, "dryfly_work");
    looked_up = 1;
  }
  if (work != 0) work(kind, precision, m, n, k);
}

/* The same of work that the processors do, however fast the GPUs are: on what lies in the host's memory. */
static inline void dryfly_work_announce_on_processor(int kind, int precision, int64_t m, int64_t n, int64_t k) {
  static void (*work)(int, int, int64_t, int64_t, int64_t) = 0;
  static int looked_up = 0;
  if (!looked_up) {
    work = (void (*)(int, int, int64_t, int64_t, int64_t))dlsym(RTLD_DEFAULT, "dryfly_work_on_processor");
    looked_up = 1;
  }
  if (work != 0) work(kind, precision, m, n, k);
}

/* What the next kernel that this thread launches is going to do on a simulated GPU (docs/guide/gpu.md): operations in
 * that precision, and bytes of the GPU's memory that it reads or writes. The kernel takes the longer of the two, beside
 * its launch, with each mode of --compute. Called again before the launch, it adds. */
static inline void dryfly_kernel_announce_work(int precision, int64_t operations, int64_t bytes) {
  static void (*announce)(int, int64_t, int64_t) = 0;
  static int looked_up = 0;
  if (!looked_up) {
    announce = (void (*)(int, int64_t, int64_t))dlsym(RTLD_DEFAULT, "dryfly_kernel_announce");
    looked_up = 1;
  }
  if (announce != 0) announce(precision, operations, bytes);
}

#endif
