// Which of the program's memory would lie on huge pages of the machine: what it maps with MAP_HUGETLB, and its heap
// where libhugetlbfs would put it there (HUGETLB_MORECORE, as the craype-hugepages modules set it).
//
// This computer need not have such pages: the program gets ordinary memory that begins where a huge page would. The
// heap is not moved; malloc is set as libhugetlbfs sets it, so that nothing is mapped apart or given back.
//
// Left out: files of hugetlbfs, what was mapped before the provider is opened (in MPI_Init), and transparent huge
// pages, which the driver does not look for (docs/model/registration.md#huge-pages).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "provider/memory_watch.hpp"

namespace dryfly::provider {

struct HugeRange {
  MemoryRange range;
  std::uint64_t page_bytes;
};

// For calls of mmap with MAP_HUGETLB and without a file. False, and errno: there is no memory.
bool map_huge(void* begin, std::size_t bytes, int access, int flags, HugeRange& made);
// These two by one thread at a time: it is there, and it has been unmapped or mapped anew.
void note_huge(const HugeRange& made);
void forget_huge(MemoryRange range);
// From now on: the heap lies on pages of that size.
void use_huge_heap(std::uint64_t page_bytes);

// How long the pages there are; 0: as everywhere.
struct HugePages {
  std::uint64_t page_bytes;
  bool is_aligned;  // a page begins at each multiple of that; else they follow each other from the heap's beginning on
};
HugePages huge_pages_at(std::uint64_t address);

}  // namespace dryfly::provider
