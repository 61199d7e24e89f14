#include "gpu/level_zero/extensions.hpp"

#include <string.h>

#include "gpu/level_zero/calls.hpp"

namespace dryfly::gpu::level_zero {

ZE_EXPORT int zeDriverGetExtensionFunctionAddress(Driver* driver, const char* name, void** to) {
  static const struct {
    const char* name;
    void* function;
  } functions[] = {
      {"dryflyCommandListAppendHostKernel", reinterpret_cast<void*>(dryflyCommandListAppendHostKernel)},
      {"zexMemGetIpcHandles", reinterpret_cast<void*>(zexMemGetIpcHandles)},
      {"zexMemOpenIpcHandles", reinterpret_cast<void*>(zexMemOpenIpcHandles)},
      {"zexDriverImportExternalPointer", reinterpret_cast<void*>(zexDriverImportExternalPointer)},
      {"zexDriverReleaseImportedPointer", reinterpret_cast<void*>(zexDriverReleaseImportedPointer)},
      {"zexDriverGetHostPointerBaseAddress", reinterpret_cast<void*>(zexDriverGetHostPointerBaseAddress)},
  };
  if (!is(driver)) return invalid_null_handle;
  if (name == nullptr || to == nullptr) return invalid_null_pointer;
  for (const auto& each : functions) {
    if (strcmp(each.name, name) != 0) continue;
    *to = each.function;
    return success;
  }
  return unsupported_feature;
}

}  // namespace dryfly::gpu::level_zero
