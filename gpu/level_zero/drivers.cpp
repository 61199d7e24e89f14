// Level Zero's drivers, of which there is one, its contexts, and what the loader says of itself.
#include <stdio.h>

#include "gpu/level_zero/calls.hpp"
#include "gpu/level_zero/node.hpp"

namespace dryfly::gpu::level_zero {

namespace {

constexpr std::uint32_t api_version = 1 << 16 | 12;
constexpr std::uint32_t driver_version = 1;

}  // namespace

// Drivers.

ZE_EXPORT int zeInit(std::uint32_t) { return settings().devices == 0 ? uninitialized : success; }
ZE_EXPORT int zeDriverGet(std::uint32_t* count, Driver** to) {
  if (settings().devices == 0) return uninitialized;
  return list_out(count, to, 1, [](Driver*& each, std::uint32_t) { each = &node().driver; });
}
ZE_EXPORT int zeInitDrivers(std::uint32_t* count, Driver** to, const Base*) { return zeDriverGet(count, to); }
ZE_EXPORT int zeDriverGetApiVersion(Driver* driver, std::uint32_t* to) {
  if (!is(driver)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = api_version;
  return success;
}
ZE_EXPORT int zeDriverGetProperties(Driver* driver, DriverProperties* to) {
  if (!is(driver)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  clear(*to);
  fill_uuid(to->uuid, -1, 0);
  to->version = driver_version;
  return success;
}
ZE_EXPORT int zeDriverGetIpcProperties(Driver* driver, FlagProperties* to) {
  constexpr std::uint32_t memory = 1;
  if (!is(driver)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  to->flags = memory;
  return success;
}
ZE_EXPORT int zeDriverGetExtensionProperties(Driver* driver, std::uint32_t* count, DriverExtension* to) {
  if (!is(driver)) return invalid_null_handle;
  return list_out(count, to, 1, [](DriverExtension& each, std::uint32_t) {
    snprintf(each.name, sizeof each.name, "ZE_extension_pci_properties");
    each.version = 1 << 16;
  });
}
ZE_EXPORT int zeDriverGetLastErrorDescription(Driver* driver, const char** to) {
  if (!is(driver)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = "";
  return success;
}

// Contexts.

ZE_EXPORT int zeContextCreate(Driver* driver, const Base* description, Context** to) {
  if (!is(driver)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  *to = make<Context>();
  return *to != nullptr ? success : out_of_host_memory;
}
ZE_EXPORT int zeContextCreateEx(Driver* driver, const Base* description, std::uint32_t, Device**, Context** to) {
  return zeContextCreate(driver, description, to);
}
ZE_EXPORT Context* zeDriverGetDefaultContext(Driver* driver) { return is(driver) ? &node().context : nullptr; }
ZE_EXPORT int zeContextDestroy(Context* context) {
  if (!is(context)) return invalid_null_handle;
  if (context != &node().context) unmake(context);
  return success;
}
ZE_EXPORT int zeContextGetStatus(Context* context) { return is(context) ? success : invalid_null_handle; }
ZE_EXPORT int zeContextSystemBarrier(Context* context, Device* device) {
  return is(context) && is(device) ? success : invalid_null_handle;
}
ZE_EXPORT int zeContextMakeMemoryResident(Context* context, Device* device, void*, std::size_t) {
  return zeContextSystemBarrier(context, device);
}
ZE_EXPORT int zeContextEvictMemory(Context* context, Device* device, void*, std::size_t) {
  return zeContextSystemBarrier(context, device);
}

// The loader's own.

ZE_EXPORT int zelGetLoaderVersion(std::size_t* bytes, char* to) {
  constexpr char version[] = "1.12.0";
  if (bytes == nullptr) return invalid_null_pointer;
  if (to != nullptr) snprintf(to, *bytes, "%s", version);
  *bytes = sizeof version;
  return success;
}
ZE_EXPORT int zelLoaderGetVersions(std::size_t* count, LoaderVersion* to) {
  if (count == nullptr) return invalid_null_pointer;
  if (to != nullptr && *count > 0) {
    *to = {"loader", api_version, 1, 12, 0};
  }
  *count = 1;
  return success;
}
ZE_EXPORT bool zelCheckIsLoaderInTearDown() { return false; }
ZE_EXPORT int zelSetDriverTeardown() { return success; }
ZE_EXPORT int zelLoaderDriverCheck() { return success; }
ZE_EXPORT void* zelLoaderGetContext() { return nullptr; }

}  // namespace dryfly::gpu::level_zero
