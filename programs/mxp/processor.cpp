#include "processor.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace dryfly::mxp {
namespace {

#if defined(__x86_64__)

Processor::Registers ask_cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
  Processor::Registers found;
  if (__get_cpuid_count(leaf, subleaf, &found.eax, &found.ebx, &found.ecx, &found.edx) == 0) return {};
  return found;
}

std::uint64_t ask_xcr0() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

bool ask_for_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

#else

Processor::Registers ask_cpuid(std::uint32_t, std::uint32_t) { return {}; }
std::uint64_t ask_xcr0() { return 0; }
bool ask_for_tiles() { return false; }

#endif

bool all_bits(std::uint64_t word, std::uint64_t bits) { return (word & bits) == bits; }
constexpr std::uint64_t bit(int number) { return std::uint64_t{1} << number; }

// The registers that the system saves.
std::uint64_t saved(const Processor& processor) {
  return all_bits(processor.cpuid(1, 0).ecx, bit(27)) ? processor.xcr0() : 0;
}

// The one form of tiles that there is: 8 of them, of 16 rows of 64 bytes.
bool has_tiles_of_a_kilobyte(const Processor& processor) {
  const Processor::Registers palette = processor.cpuid(0x1d, 1);
  return palette.eax >> 16 == 1024 && (palette.ebx & 0xffff) == 64 && palette.ebx >> 16 >= 8 &&
         (palette.ecx & 0xffff) >= 16;
}

constexpr std::uint64_t kSse = bit(1), kAvx = bit(2), kAvx512 = bit(5) | bit(6) | bit(7);  // registers

}  // namespace

const Processor& this_processor() {
  static const Processor kThis = {ask_cpuid, ask_xcr0, ask_for_tiles};
  return kThis;
}

std::string missing_for_avx2(const Processor& processor) {
  if (!all_bits(processor.cpuid(7, 0).ebx, bit(5))) return "this processor has no AVX2";
  return all_bits(saved(processor), kSse | kAvx) ? "" : "this system does not save the registers of AVX";
}

bool has_avx512(const Processor& processor) {
  return all_bits(processor.cpuid(7, 0).ebx, bit(16)) && all_bits(saved(processor), kSse | kAvx | kAvx512);
}

std::string missing_for_avx512_bf16(const Processor& processor) {
  constexpr std::uint64_t kFoundations = bit(16) | bit(17) | bit(30) | bit(31);  // F, DQ, BW, VL
  if (!all_bits(processor.cpuid(7, 0).ebx, kFoundations) || !all_bits(processor.cpuid(7, 1).eax, bit(5)))
    return "this processor has no AVX512-BF16";
  return all_bits(saved(processor), kSse | kAvx | kAvx512) ? "" : "this system does not save the registers of AVX-512";
}

std::string missing_for_amx(const Processor& processor) {
  if (!all_bits(processor.cpuid(7, 0).edx, bit(22) | bit(24))) return "this processor has no AMX-BF16";
  if (const std::string vectors = missing_for_avx512_bf16(processor); !vectors.empty()) return vectors;
  if (!has_tiles_of_a_kilobyte(processor)) return "this processor's AMX has other tiles than 8 of 16 x 64 bytes";
  if (!all_bits(saved(processor), bit(17) | bit(18))) return "this system does not save the tiles of AMX";
  return processor.permission_tiles() ? "" : "this system does not let a process use the tiles of AMX";
}

}  // namespace dryfly::mxp
