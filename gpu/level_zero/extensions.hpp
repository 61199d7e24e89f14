// Calls of Level Zero that have no symbol: a program gets them by zeDriverGetExtensionFunctionAddress.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/level_zero/objects.hpp"
#include "gpu/level_zero/types.hpp"

namespace dryfly::gpu::level_zero {

// Of Intel's driver: a handle for each tile of an allocation, and memory of the program's that is made known.
int zexMemGetIpcHandles(Context* context, const void* pointer, std::uint32_t* count, IpcHandle* to);
int zexMemOpenIpcHandles(Context* context, Device* device, std::uint32_t count, IpcHandle* handles, std::uint32_t flags,
                         void** to);
int zexDriverImportExternalPointer(Driver* driver, void* start, std::size_t bytes);
int zexDriverReleaseImportedPointer(Driver* driver, void* start);
int zexDriverGetHostPointerBaseAddress(Driver* driver, void* pointer, void** base);

// Of dryfly alone: include/dryfly/level_zero.h.
int dryflyCommandListAppendHostKernel(List* list, void (*kernel)(void*), const void* argument, std::size_t bytes,
                                      Signal* signal, std::uint32_t count, Signal** waits);

}  // namespace dryfly::gpu::level_zero
