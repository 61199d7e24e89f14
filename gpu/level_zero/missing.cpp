// Calls of Level Zero that are not simulated: programs find them and are refused. Of a module it is said why.
#include <stdio.h>

#include "gpu/level_zero/calls.hpp"

namespace dryfly::gpu::level_zero {

namespace {

int refuse_module() {
  static bool said = false;
  if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
    fputs(
        "dryfly: the program makes a module of Level Zero, whose kernels are not run on a simulated GPU; functions "
        "that were compiled for this computer are (dryfly/level_zero.h)\n",
        stderr);
  }
  return unsupported_feature;
}

}  // namespace

ZE_EXPORT int zeModuleCreate() { return refuse_module(); }
ZE_EXPORT int zeKernelCreate() { return refuse_module(); }

// An argument that nobody reads needs no name in C's calling convention.
#define MISSING(name) \
  ZE_EXPORT int name() { return unsupported_feature; }
#include "gpu/level_zero/missing.def"
#undef MISSING

}  // namespace dryfly::gpu::level_zero
