// A system call, straight to the kernel: past the C library and whoever stands in front of it. Not through dlsym
// either: the first one may come while the dynamic linker is at work. Loaded into user programs: libc only.
#pragma once

#include <errno.h>

namespace dryfly::rank {

// The kernel's own answer: an error is its negative number. Touches no errno.
inline long bare_kernel_call(long number, const long (&a)[6]) {
#if defined(__x86_64__)
  long result = number;
  register long r10 __asm__("r10") = a[3];
  register long r8 __asm__("r8") = a[4];
  register long r9 __asm__("r9") = a[5];
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long result __asm__("x0") = a[0];
  register long x1 __asm__("x1") = a[1];
  register long x2 __asm__("x2") = a[2];
  register long x3 __asm__("x3") = a[3];
  register long x4 __asm__("x4") = a[4];
  register long x5 __asm__("x5") = a[5];
  __asm__ volatile("svc 0" : "+r"(result) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
#else
#error "how this processor makes a system call is not known here"
#endif
  return result;
}

inline long kernel_call(long number, const long (&a)[6]) {
  const long result = bare_kernel_call(number, a);
  constexpr long largest_error = 4095;
  if (result >= 0 || result < -largest_error) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace dryfly::rank
