// The driver's operations of streams on words of memory, in libcuda.so.1: writes, and waits until a word has a value. A
// device that has them takes CUDA 12's words: flags of a wait say how it compares, and that writes of others are to be
// flushed before, which is so here anyway. Left out: the forms for a default stream of each thread.
#include <stdint.h>

#include "gpu/cuda_codes.hpp"
#include "gpu/streams.hpp"

#define CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace dryfly::gpu;
using DevicePointer = std::uint64_t;

constexpr unsigned flushes = 1U << 30;   // CU_STREAM_WAIT_VALUE_FLUSH
constexpr unsigned without_barrier = 1;  // CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
constexpr unsigned batch_most = 256;

int wait_for(Stream* stream, DevicePointer address, std::uint64_t value, unsigned flags, std::uint32_t bytes,
             bool of_batch = false) {
  constexpr Comparison comparisons[] = {Comparison::reached, Comparison::equal, Comparison::common_bit,
                                        Comparison::missing_bit};
  const unsigned how = flags & ~flushes;
  if (how >= sizeof comparisons / sizeof *comparisons || address % bytes != 0) return cuda::invalid_value;
  return cuda::code_of(Streams::get().wait(
      stream,
      {.address = address, .value = value, .mask = ~std::uint64_t{0}, .bytes = bytes, .comparison = comparisons[how]},
      of_batch));
}

int write_to(Stream* stream, DevicePointer address, std::uint64_t value, unsigned flags, std::uint32_t bytes,
             bool of_batch = false) {
  if ((flags & ~without_barrier) != 0 || address % bytes != 0) return cuda::invalid_value;
  return cuda::code_of(Streams::get().write(stream, reinterpret_cast<void*>(address), value, bytes, of_batch));
}

// CUstreamBatchMemOpParams.
struct Item {
  enum Kind : unsigned { wait_32 = 1, write_32 = 2, flush = 3, wait_64 = 4, write_64 = 5, barrier = 6 };
  unsigned kind;
  DevicePointer address;
  std::uint64_t value;
  unsigned flags;
  std::uint64_t rest[2];
};
static_assert(sizeof(Item) == 48);

int run(Stream* stream, const Item& item, bool of_batch) {
  constexpr std::uint64_t low = 0xffffffffU;
  switch (item.kind) {
    case Item::wait_32:
      return wait_for(stream, item.address, item.value & low, item.flags, 4, of_batch);
    case Item::write_32:
      return write_to(stream, item.address, item.value & low, item.flags, 4, of_batch);
    case Item::wait_64:
      return wait_for(stream, item.address, item.value, item.flags, 8, of_batch);
    case Item::write_64:
      return write_to(stream, item.address, item.value, item.flags, 8, of_batch);
    case Item::flush:
    case Item::barrier:
      return cuda::success;
    default:
      return cuda::invalid_value;
  }
}

}  // namespace

CUDA_EXPORT int cuStreamWaitValue32_v2(Stream* stream, DevicePointer address, std::uint32_t value, unsigned flags) {
  return wait_for(stream, address, value, flags, sizeof value);
}
CUDA_EXPORT int cuStreamWaitValue32(Stream* stream, DevicePointer address, std::uint32_t value, unsigned flags) {
  return wait_for(stream, address, value, flags, sizeof value);
}
CUDA_EXPORT int cuStreamWaitValue64_v2(Stream* stream, DevicePointer address, std::uint64_t value, unsigned flags) {
  return wait_for(stream, address, value, flags, sizeof value);
}
CUDA_EXPORT int cuStreamWaitValue64(Stream* stream, DevicePointer address, std::uint64_t value, unsigned flags) {
  return wait_for(stream, address, value, flags, sizeof value);
}
CUDA_EXPORT int cuStreamWriteValue32_v2(Stream* stream, DevicePointer address, std::uint32_t value, unsigned flags) {
  return write_to(stream, address, value, flags, sizeof value);
}
CUDA_EXPORT int cuStreamWriteValue32(Stream* stream, DevicePointer address, std::uint32_t value, unsigned flags) {
  return write_to(stream, address, value, flags, sizeof value);
}
CUDA_EXPORT int cuStreamWriteValue64_v2(Stream* stream, DevicePointer address, std::uint64_t value, unsigned flags) {
  return write_to(stream, address, value, flags, sizeof value);
}
CUDA_EXPORT int cuStreamWriteValue64(Stream* stream, DevicePointer address, std::uint64_t value, unsigned flags) {
  return write_to(stream, address, value, flags, sizeof value);
}
// One after the other, and one call of the processor.
CUDA_EXPORT int cuStreamBatchMemOp_v2(Stream* stream, unsigned count, const Item* items, unsigned flags) {
  if (count > batch_most || (count != 0 && items == nullptr) || flags != 0) return cuda::invalid_value;
  for (unsigned i = 0; i < count; ++i) {
    if (const int code = run(stream, items[i], i > 0); code != cuda::success) return code;
  }
  return cuda::success;
}
CUDA_EXPORT int cuStreamBatchMemOp(Stream* stream, unsigned count, const Item* items, unsigned flags) {
  return cuStreamBatchMemOp_v2(stream, count, items, flags);
}
