#include "preload/mpi/datatypes.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "preload/mpi/mpi_library.hpp"
#include "preload/mpi/spin_lock.hpp"

namespace dryfly::preload {

namespace {

// Larger types count as contiguous: what their blocks cost is little beside their bytes.
constexpr long size_max = 256L << 20;
constexpr long extent_max = 1L << 40;

struct Blocks {
  long datatype;
  std::uint32_t mean;
};

SpinLock guard;
std::atomic<std::uint32_t> count{0};
Blocks* types = nullptr;
std::uint32_t room = 0;

template <typename... Words>
int pmpi(const char* name, Words... words) {
  return reinterpret_cast<int (*)(Words...)>(find_pmpi(name))(words...);
}

// Counts the runs of marked bytes in memory of which most pages may never have been touched.
long runs_in(const unsigned char* memory, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  constexpr std::size_t pages_at_once = 4096;
  unsigned char resident[pages_at_once];
  long runs = 0;
  bool inside = false;
  for (std::size_t at = 0; at < bytes; at += pages_at_once * page) {
    const std::size_t here = bytes - at < pages_at_once * page ? bytes - at : pages_at_once * page;
    if (mincore(const_cast<unsigned char*>(memory) + at, here, resident) != 0) return 0;
    for (std::size_t i = 0; i < here; i += page) {
      if ((resident[i / page] & 1) == 0) {
        inside = false;
        continue;
      }
      for (std::size_t byte = i; byte < i + page && byte < here; ++byte) {
        const bool marked = memory[at + byte] != 0;
        if (marked && !inside) ++runs;
        inside = marked;
      }
    }
  }
  return runs;
}

// Has the library unpack an element of marked bytes into empty memory: where they lie is the type's map, whatever it
// was made by. 0 where that cannot be done.
long blocks_in(long datatype, long size, long first, long extent) {
  int has_world = 0;  // a program of sessions has no communicator to unpack by
  pmpi("Initialized", &has_world);
  if (has_world == 0 || size > size_max || extent > extent_max) return 0;
  void* packed = malloc(static_cast<std::size_t>(size));
  const auto bytes = static_cast<std::size_t>(extent);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  long found = 0;
  if (packed != nullptr && memory != MAP_FAILED) {
    madvise(memory, bytes, MADV_NOHUGEPAGE);  // else whole huge pages are touched
    memset(packed, 0xff, static_cast<std::size_t>(size));
    int position = 0;
    char* zero = static_cast<char*>(memory) - first;
    const int status = pmpi("Unpack", static_cast<const void*>(packed), static_cast<int>(size), &position,
                            static_cast<void*>(zero), 1, datatype, constants().comm_world);
    if (status == 0) found = runs_in(static_cast<const unsigned char*>(memory), bytes);
  }
  if (memory != MAP_FAILED) munmap(memory, bytes);
  free(packed);
  return found;
}

std::uint32_t mean_block(long datatype) {
  const long size = type_size(datatype);
  long first = 0;
  long true_extent = 0;
  long lower = 0;
  long extent = 0;
  if (size <= 0 || pmpi("Type_get_true_extent", datatype, &first, &true_extent) != 0 ||
      pmpi("Type_get_extent", datatype, &lower, &extent) != 0 || (size == true_extent && size == extent)) {
    return 0;
  }
  const long blocks = size == true_extent ? 1 : blocks_in(datatype, size, first, true_extent);
  return blocks > 0 ? static_cast<std::uint32_t>((size + blocks - 1) / blocks) : 0;
}

void forget(long datatype) {
  const std::uint32_t known = count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < known; ++i) {
    if (types[i].datatype != datatype) continue;
    types[i] = types[known - 1];
    count.store(known - 1, std::memory_order_relaxed);
    return;
  }
}

void remember(const Blocks& blocks) {
  const std::uint32_t known = count.load(std::memory_order_relaxed);
  if (known == room) {
    const std::uint32_t more = room + 64;
    auto* grown = static_cast<Blocks*>(realloc(types, more * sizeof(Blocks)));
    if (grown == nullptr) return;
    types = grown;
    room = more;
  }
  types[known] = blocks;
  count.store(known + 1, std::memory_order_relaxed);
}

}  // namespace

void note_datatype(Call call, const long* words) {
  if (call != Call::Type_commit && call != Call::Type_dup) return;
  const bool copies = call == Call::Type_dup;
  const long datatype = handle_at(words[copies ? 1 : 0]);
  // A copy of a type that is not committed cannot be unpacked by, and will be committed.
  const std::uint32_t mean = copies ? block_of(words[0]) : mean_block(datatype);
  const SpinLock::Hold hold(guard);
  forget(datatype);
  if (mean != 0) remember({datatype, mean});
}

void forget_datatype(Call call, const long* words) {
  if (call != Call::Type_free || count.load(std::memory_order_relaxed) == 0) return;
  const SpinLock::Hold hold(guard);
  forget(handle_at(words[0]));
}

std::uint32_t block_of(long datatype) {
  if (count.load(std::memory_order_relaxed) == 0) return 0;
  const long wanted = handle(datatype);
  const SpinLock::Hold hold(guard);
  const std::uint32_t known = count.load(std::memory_order_relaxed);
  for (std::uint32_t i = known; i > 0; --i) {
    if (types[i - 1].datatype == wanted) return types[i - 1].mean;
  }
  return 0;
}

}  // namespace dryfly::preload
