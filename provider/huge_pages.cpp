#include "provider/huge_pages.hpp"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>

#include "rank/kernel_call.hpp"

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

namespace dryfly::provider {

namespace {

constexpr int size_mask = 0x3f;        // of MAP_HUGE_SHIFT
constexpr std::uint64_t usual = 21;    // 2 MiB
constexpr std::uint64_t longest = 34;  // 16 GiB, the longest that Linux names
constexpr std::size_t ranges_max = 256;

constinit HugeRange ranges[ranges_max];
constinit std::size_t range_count = 0;
constinit std::uint64_t heap_begin = 0;
constinit std::uint64_t heap_page = 0;

long kernel(long number, std::uint64_t a, std::uint64_t b, long c = 0, long d = 0, long e = 0) {
  const long arguments[6] = {static_cast<long>(a), static_cast<long>(b), c, d, e, 0};
  return rank::kernel_call(number, arguments);
}

// Memory at a multiple of `page`, with nothing around it.
std::uint64_t map_aligned(std::uint64_t bytes, std::uint64_t page, int access, int flags) {
  const long mapped = kernel(SYS_mmap, 0, bytes + page, access, flags, -1);
  if (mapped == -1) return 0;
  const auto begin = static_cast<std::uint64_t>(mapped);
  const std::uint64_t aligned = (begin + page - 1) & ~(page - 1);
  if (aligned != begin) kernel(SYS_munmap, begin, aligned - begin);
  if (begin + page != aligned) kernel(SYS_munmap, aligned + bytes, begin + page - aligned);
  return aligned;
}

}  // namespace

bool map_huge(void* begin, std::size_t bytes, int access, int flags, HugeRange& made) {
  const auto asked = static_cast<std::uint64_t>(flags >> MAP_HUGE_SHIFT & size_mask);
  const std::uint64_t page = std::uint64_t{1} << (asked == 0 ? usual : asked < longest ? asked : longest);
  const std::uint64_t whole = (bytes + page - 1) & ~(page - 1);
  const int ordinary = flags & ~(MAP_HUGETLB | size_mask << MAP_HUGE_SHIFT);
  auto place = reinterpret_cast<std::uint64_t>(begin);
  if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) == 0) {
    place = map_aligned(whole, page, access, ordinary);
  } else if (kernel(SYS_mmap, place, whole, access, ordinary, -1) == -1) {
    place = 0;
  }
  made = {{place, place + whole}, page};
  return place != 0;
}

void note_huge(const HugeRange& made) {
  forget_huge(made.range);
  if (range_count < ranges_max) ranges[range_count++] = made;
}

void forget_huge(MemoryRange range) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < range_count; ++i) {
    if (!range.holds(ranges[i].range)) ranges[kept++] = ranges[i];
  }
  range_count = kept;
}

void use_huge_heap(std::uint64_t page_bytes) {
  if (heap_page != 0) return;
  heap_page = page_bytes;
  heap_begin = reinterpret_cast<std::uint64_t>(sbrk(0)) - static_cast<std::uint64_t>(mallinfo2().arena);
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

HugePages huge_pages_at(std::uint64_t address) {
  for (std::size_t i = 0; i < range_count; ++i) {
    if (address >= ranges[i].range.begin && address < ranges[i].range.end) return {ranges[i].page_bytes, true};
  }
  const bool on_heap = heap_page != 0 && address >= heap_begin && address < reinterpret_cast<std::uint64_t>(sbrk(0));
  return on_heap ? HugePages{heap_page, false} : HugePages{};
}

}  // namespace dryfly::provider
