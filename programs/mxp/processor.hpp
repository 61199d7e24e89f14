// What the own kernels need of the processor and the system, and whether it is there. AMX has three conditions: cpuid
// has the instructions, the system saves the tiles (XCR0), and Linux lets this process use them, which has to be asked
// for (arch_prctl; Documentation/arch/x86/xstate.rst of the kernel). Sources of the bits: Intel's Software Developer's
// Manual, volume 1, chapters 13 and 18, and volume 2, CPUID.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace dryfly::mxp {

// The answers of a processor and its system, so that a test can give others.
struct Processor {
  struct Registers {
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  };
  std::function<Registers(std::uint32_t leaf, std::uint32_t subleaf)> cpuid;
  std::function<std::uint64_t()> xcr0;     // asked only where cpuid says that it can be
  std::function<bool()> permission_tiles;  // asks the system for them; true: they may be used
};

const Processor& this_processor();

// What is missing for the kernel, as "this processor has no ..."; empty: nothing.
std::string missing_for_avx2(const Processor& processor);
std::string missing_for_avx512_bf16(const Processor& processor);
std::string missing_for_amx(const Processor& processor);

// The foundation of it, whatever else there is.
bool has_avx512(const Processor& processor);

}  // namespace dryfly::mxp
