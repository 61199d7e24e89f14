#include "provider/gpu_memory.hpp"

// Absent where ranks have no simulated GPUs.
extern "C" __attribute__((weak)) int dryfly_gpu_of(const void* buffer);

namespace dryfly::provider {

std::uint8_t gpu_of(const Domain& domain, const void* buffer) {
  if (domain.has_nics() || buffer == nullptr || dryfly_gpu_of == nullptr) return 0;
  return static_cast<std::uint8_t>(dryfly_gpu_of(buffer) + 1);
}

}  // namespace dryfly::provider
