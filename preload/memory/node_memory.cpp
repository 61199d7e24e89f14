#include "preload/memory/node_memory.hpp"

#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/clock/progress_rest.hpp"
#include "preload/clock/software.hpp"
#include "preload/loaded_part.hpp"
#include "preload/memory/shared_copies.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

// Where the MPI library has mapped memory of the node. One whose memory is unmapped becomes empty, and is used again.
struct Region {
  std::atomic<std::uintptr_t> begin;
  std::atomic<std::uintptr_t> end;
  std::uint64_t file;  // of which it is a mapping from that offset on
  std::uint64_t offset;
};
constexpr std::size_t region_max = 256;
constinit Region regions[region_max]{};
std::atomic<std::size_t> region_count{0};

bool find_piece(const void* address, SharedPiece& found) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t count = region_count.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t begin = regions[i].begin.load(std::memory_order_relaxed);
    if (at >= begin && at < regions[i].end.load(std::memory_order_relaxed)) {
      found = {regions[i].file, regions[i].offset + (at - begin)};
      return true;
    }
  }
  return false;
}

void charge_copy(const void* target, const void* source, std::size_t bytes) {
  dryfly_self.copies.store(dryfly_self.copies.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  note_getting_on();
  SharedPiece from{};
  SharedPiece to{};
  const bool reads = find_piece(source, from);
  const bool writes = find_piece(target, to);
  if (reads) charge_read(from, bytes);
  if (writes && !reads) charge_written(bytes);
  if (writes) note_writer(to, bytes);
  if (!writes) note_placed(target, bytes);
  if (!reads && !writes) charge_copied(bytes);
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
    const auto from = reinterpret_cast<std::uint64_t>(there->iov_base);
    charge_read_of(process, from, here, here_count, static_cast<std::size_t>(got));
    for (std::size_t i = 0; i < here_count; ++i) note_placed(here[i].iov_base, here[i].iov_len);
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
  struct stat facts{};
  if (fstat(file, &facts) != 0) return mapped;
  regions[place].file = facts.st_ino ^ (std::uint64_t{facts.st_dev} << 40);
  regions[place].offset = static_cast<std::uint64_t>(offset);
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
  const bool is_open_pal = object->dlpi_name != nullptr && strstr(object->dlpi_name, "/libopen-pal") != nullptr;
  if (!is_open_pal && part_with(*object, address) == nullptr) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC) dynamic = reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + part.p_vaddr);
  }
  if (dynamic == nullptr) return 0;
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
