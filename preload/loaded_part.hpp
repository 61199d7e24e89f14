// Which part of a loaded object an address lies in, for walks by dl_iterate_phdr.
#pragma once

#include <link.h>

#include <cstdint>

namespace dryfly::preload {

// Null if it lies in another object.
inline const ElfW(Phdr) * part_with(const dl_phdr_info& object, std::uintptr_t address) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& part = object.dlpi_phdr[i];
    const std::uintptr_t begin = object.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && address >= begin && address < begin + part.p_memsz) return &part;
  }
  return nullptr;
}

}  // namespace dryfly::preload
