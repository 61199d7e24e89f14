#include "preload/memory/node_memory.hpp"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/memory/moved.hpp"
#include "preload/clock/software.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

// Where the MPI library has mapped memory of the node. One whose memory is unmapped becomes empty, and is used again.
struct Region {
  std::atomic<std::uintptr_t> begin;
  std::atomic<std::uintptr_t> end;
};
constexpr std::size_t region_max = 256;
constinit Region regions[region_max]{};
std::atomic<std::size_t> region_count{0};

bool lies_in_node_memory(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t count = region_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (at >= regions[i].begin.load(std::memory_order_relaxed) && at < regions[i].end.load(std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// When the memory of the node, and the link between its sockets, have moved what a core copies from that instant on;
// the ranks of a node go in turn. Of what it `reads` there as much comes from another socket as there are ranks on
// others.
std::uint64_t moved_through_memory(std::uint64_t begin_ps, std::uint64_t alone_ps, std::uint64_t bytes, bool reads) {
  wire::SegmentHeader& header = *dryfly_self.header;
  const wire::CopyCosts& copies = header.copies;
  const wire::NodeShare& share = dryfly_self.page->share;
  auto* accounts = reinterpret_cast<MovedMemory*>(reinterpret_cast<char*>(&header) + copies.moved_offset) +
                   std::size_t{share.node_of_job} * (1 + copies.sockets);
  std::uint64_t end_ps = begin_ps + alone_ps;
  if (copies.room != 0 && bytes > copies.cached) {
    const std::uint64_t room = wire::SlowNode::less(copies.room, share.slow.memory_ppb);
    end_ps = accounts[0].end_of(begin_ps, alone_ps, 2 * bytes, room);
  }
  if (reads && share.across_ppb != 0 && copies.crossing_room != 0) {
    constexpr std::uint64_t whole_ppb = 1'000'000'000;
    const auto crossing =
        static_cast<std::uint64_t>(static_cast<unsigned __int128>(bytes) * share.across_ppb / whole_ppb);
    end_ps = std::max(end_ps, accounts[1 + share.socket].end_of(begin_ps, alone_ps, crossing, copies.crossing_room));
  }
  return end_ps;
}

void charge(std::size_t bytes, bool reads) {
  if (bytes == 0 || phase() != Phase::running || dryfly_self.header == nullptr) return;
  dryfly_self.has_acted.store(1, std::memory_order_relaxed);
  reach_node_memory(bytes);
  const wire::CopyCosts& copies = dryfly_self.header->copies;
  const wire::NodeShare& share = dryfly_self.page->share;
  const std::uint64_t by_place_ps = bytes > copies.cached ? share.copied_ps_per_kib : share.cached_ps_per_kib;
  std::uint64_t alone_ps = bytes * (by_place_ps != 0 ? by_place_ps : copies.ps_per_kib) / 1024;
  if (bytes > copies.cached) alone_ps = wire::SlowNode::longer(alone_ps, dryfly_self.page->share.slow.memory_ppb);
  dryfly_self.now_ps.fetch_add(dryfly_self.duration_ps(copies.ps + alone_ps), std::memory_order_relaxed);
  const std::uint64_t end_ps = dryfly_self.now();
  const std::uint64_t moved_until_ps = moved_through_memory(end_ps - alone_ps, alone_ps, bytes, reads);
  if (moved_until_ps > end_ps) dryfly_self.now_ps.fetch_add(moved_until_ps - end_ps, std::memory_order_relaxed);
}

// Of the kernel, which copies out of another process's memory.
void charge_call() {
  if (phase() != Phase::running || dryfly_self.header == nullptr) return;
  dryfly_self.now_ps.fetch_add(dryfly_self.duration_ps(dryfly_self.header->copies.cross_ps), std::memory_order_relaxed);
}

void charge_copy(const void* target, const void* source, std::size_t bytes) {
  dryfly_self.copies.store(dryfly_self.copies.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const bool reads = lies_in_node_memory(source);
  if (reads || lies_in_node_memory(target)) {
    charge(bytes, reads);
  } else {
    charge_copied(bytes);
  }
}

void* watched_memcpy(void* target, const void* source, std::size_t bytes) {
  charge_copy(target, source, bytes);
  return memcpy(target, source, bytes);
}

void* watched_memmove(void* target, const void* source, std::size_t bytes) {
  charge_copy(target, source, bytes);
  return memmove(target, source, bytes);
}

ssize_t watched_process_vm_readv(pid_t process, const iovec* here, unsigned long here_count, const iovec* there,
                                 unsigned long there_count, unsigned long flags) {
  const ssize_t got = process_vm_readv(process, here, here_count, there, there_count, flags);
  if (got > 0) {
    charge_call();
    charge(static_cast<std::size_t>(got), true);
  }
  return got;
}

void* watched_mmap(void* wanted, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  void* mapped = mmap(wanted, bytes, protection, flags, file, offset);
  if (mapped == MAP_FAILED || (flags & MAP_SHARED) == 0 || file < 0) return mapped;
  const std::size_t count = region_count.load(std::memory_order_relaxed);
  std::size_t place = 0;
  while (place < count && regions[place].end.load(std::memory_order_relaxed) != 0) ++place;
  if (place == region_max) return mapped;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped);
  regions[place].begin.store(begin, std::memory_order_relaxed);
  regions[place].end.store(begin + bytes, std::memory_order_relaxed);
  if (place == count) region_count.store(count + 1, std::memory_order_release);
  return mapped;
}

int watched_munmap(void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t count = region_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (regions[i].begin.load(std::memory_order_relaxed) == begin) regions[i].end.store(0, std::memory_order_relaxed);
  }
  return munmap(address, bytes);
}

struct Replacement {
  const char* name;
  std::uintptr_t function;
};

struct Tables {
  std::uintptr_t base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * calls = nullptr;  // functions called through the procedure linkage table
  std::size_t calls_bytes = 0;
  const ElfW(Rela) * data = nullptr;  // functions whose address is taken, or called without that table
  std::size_t data_bytes = 0;
};

// The loader has made these addresses absolute in most of its versions, and left them relative in some.
std::uintptr_t absolute(std::uintptr_t base, std::uintptr_t address) {
  return address < base ? base + address : address;
}

Tables tables_of(std::uintptr_t base, const ElfW(Dyn) * entry) {
  Tables tables;
  tables.base = base;
  for (; entry->d_tag != DT_NULL; ++entry) {
    const std::uintptr_t at = absolute(base, entry->d_un.d_ptr);
    switch (entry->d_tag) {
      case DT_SYMTAB:
        tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
        break;
      case DT_STRTAB:
        tables.names = reinterpret_cast<const char*>(at);
        break;
      case DT_JMPREL:
        tables.calls = reinterpret_cast<const ElfW(Rela)*>(at);
        break;
      case DT_PLTRELSZ:
        tables.calls_bytes = entry->d_un.d_val;
        break;
      case DT_RELA:
        tables.data = reinterpret_cast<const ElfW(Rela)*>(at);
        break;
      case DT_RELASZ:
        tables.data_bytes = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  return tables;
}

void put(std::uintptr_t slot, std::uintptr_t function) {
  const auto page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  void* page = reinterpret_cast<void*>(slot / page_bytes * page_bytes);
  if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return;
  *reinterpret_cast<std::uintptr_t*>(slot) = function;
}

void replace(const Tables& tables, const ElfW(Rela) * entry, std::size_t bytes, const Replacement* wanted,
             std::size_t count) {
  const ElfW(Rela)* end = entry + bytes / sizeof(ElfW(Rela));
  for (; entry != nullptr && entry != end; ++entry) {
    const auto symbol = ELF64_R_SYM(entry->r_info);
    if (symbol == 0 || entry->r_addend != 0) continue;
    const char* name = tables.names + tables.symbols[symbol].st_name;
    for (std::size_t i = 0; i < count; ++i) {
      if (strcmp(name, wanted[i].name) == 0) put(tables.base + entry->r_offset, wanted[i].function);
    }
  }
}

// Of the object in which the address lies, and of the part that Open MPI keeps its datatypes in.
int look_into(dl_phdr_info* object, std::size_t, void* data) {
  const auto address = *static_cast<std::uintptr_t*>(data);
  const ElfW(Dyn)* dynamic = nullptr;
  bool found = object->dlpi_name != nullptr && strstr(object->dlpi_name, "/libopen-pal") != nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (part.p_type == PT_LOAD && address >= begin && address < begin + part.p_memsz) found = true;
  }
  if (!found || dynamic == nullptr) return 0;
  const Replacement wanted[] = {
      {"memcpy", reinterpret_cast<std::uintptr_t>(watched_memcpy)},
      {"memmove", reinterpret_cast<std::uintptr_t>(watched_memmove)},
      {"process_vm_readv", reinterpret_cast<std::uintptr_t>(watched_process_vm_readv)},
      {"mmap", reinterpret_cast<std::uintptr_t>(watched_mmap)},
      {"munmap", reinterpret_cast<std::uintptr_t>(watched_munmap)},
  };
  const Tables tables = tables_of(object->dlpi_addr, dynamic);
  if (tables.symbols == nullptr || tables.names == nullptr) return 0;
  constexpr std::size_t copies = 2;  // without memory of the node only these
  const std::size_t count = nodes_share_memory() ? sizeof wanted / sizeof wanted[0] : copies;
  replace(tables, tables.calls, tables.calls_bytes, wanted, count);
  replace(tables, tables.data, tables.data_bytes, wanted, count);
  return 0;
}

}  // namespace

bool nodes_share_memory() {
  static std::atomic<int> known{-1};
  int answer = known.load(std::memory_order_relaxed);
  if (answer < 0) {
    const char* folder = getenv("DRYFLY_SEGMENTS");
    answer = folder != nullptr && *folder != 0 ? 1 : 0;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer != 0;
}

void watch_copies() {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  auto address = reinterpret_cast<std::uintptr_t>(find_pmpi("Init"));
  dl_iterate_phdr(look_into, &address);
}

}  // namespace dryfly::preload
