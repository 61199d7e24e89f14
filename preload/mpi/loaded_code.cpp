#include "preload/mpi/loaded_code.hpp"

#include <link.h>

#include <cstddef>

#include "preload/loaded_part.hpp"
#include "preload/mpi/mpi_library.hpp"

namespace dryfly::preload {

namespace {

struct Search {
  std::uintptr_t address;
  std::uintptr_t begin;
  std::uintptr_t end;
};

int look_into(dl_phdr_info* object, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const auto* const part = part_with(*object, search->address);
  if (part == nullptr) return 0;
  search->begin = object->dlpi_addr + part->p_vaddr;
  search->end = search->begin + part->p_memsz;
  return 1;
}

}  // namespace

void LoadedCode::look_up(const char* function) {
  Search search{reinterpret_cast<std::uintptr_t>(find_in_library(function)), 0, 1};
  if (search.address != 0) dl_iterate_phdr(look_into, &search);
  begin_.store(search.begin, std::memory_order_relaxed);
  end_.store(search.end, std::memory_order_release);
}

bool LoadedCode::has(const void* address, const char* function) {
  if (end_.load(std::memory_order_acquire) == 0) look_up(function);
  const auto asked = reinterpret_cast<std::uintptr_t>(address);
  return asked >= begin_.load(std::memory_order_relaxed) && asked < end_.load(std::memory_order_relaxed);
}

}  // namespace dryfly::preload
