#include "kernel.hpp"

// A compiler that comes with the header has an assembler for the instructions.
#if defined(__x86_64__) && __has_include(<amxbf16intrin.h>)

#include "kernel_amx.hpp"

namespace dryfly::mxp {
std::unique_ptr<Kernel> amx_kernel() { return std::make_unique<AmxKernel<AmxTiles, subtract_block>>(); }
}  // namespace dryfly::mxp

#else

namespace dryfly::mxp {
std::unique_ptr<Kernel> amx_kernel() { return nullptr; }
}  // namespace dryfly::mxp

#endif
