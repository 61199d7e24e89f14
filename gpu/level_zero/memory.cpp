// Level Zero's memory: taken and given back, and what it tells of a pointer.
#include "gpu/level_zero/calls.hpp"
#include "gpu/level_zero/extensions.hpp"
#include "gpu/level_zero/ipc.hpp"
#include "gpu/level_zero/node.hpp"

namespace dryfly::gpu::level_zero {

namespace {

constexpr std::uint64_t memory_page_bytes = 64 << 10;

int allocate(Kind kind, std::size_t bytes, std::size_t alignment, const Device* device, void** to) {
  if (to == nullptr) return invalid_null_pointer;
  if (bytes == 0) return unsupported_size;
  if ((alignment & (alignment - 1)) != 0) return unsupported_alignment;
  const int first = device != nullptr ? device->first : 0;
  const int count = kind == Kind::device && device != nullptr ? device->count : 1;
  Result result = Result::bad_value;
  for (int i = first; i < first + count; ++i) {
    const On on(i);
    result = runtime().allocate(kind, bytes, *to, alignment);
    if (result != Result::out_of_memory) break;
  }
  if (result == Result::done && count > 1) runtime().mark_whole(*to);
  return code_of(result);
}

}  // namespace

ZE_EXPORT int zeMemAllocDevice(Context* context, const Base* description, std::size_t bytes, std::size_t alignment,
                               Device* device, void** to) {
  if (!is(context) || !is(device)) return invalid_null_handle;
  if (description == nullptr) return invalid_null_pointer;
  return allocate(Kind::device, bytes, alignment, device, to);
}
ZE_EXPORT int zeMemAllocHost(Context* context, const Base* description, std::size_t bytes, std::size_t alignment,
                             void** to) {
  if (!is(context)) return invalid_null_handle;
  if (description == nullptr) return invalid_null_pointer;
  return allocate(Kind::pinned, bytes, alignment, nullptr, to);
}
ZE_EXPORT int zeMemAllocShared(Context* context, const Base* of_device, const Base* of_host, std::size_t bytes,
                               std::size_t alignment, Device* device, void** to) {
  if (!is(context) || (device != nullptr && !is(device))) return invalid_null_handle;
  if (of_device == nullptr || of_host == nullptr) return invalid_null_pointer;
  return allocate(Kind::managed, bytes, alignment, device, to);
}
ZE_EXPORT int zeMemFree(Context* context, void* pointer) {
  if (!is(context)) return invalid_null_handle;
  if (pointer == nullptr) return invalid_null_pointer;
  const Place place = runtime().place_of(pointer);
  const int code = code_of(runtime().release(pointer, place.kind == Kind::pinned));
  if (code == success) forget_descriptor(place.allocation.id);
  return code;
}
ZE_EXPORT int zeMemFreeExt(Context* context, const Base*, void* pointer) { return zeMemFree(context, pointer); }
ZE_EXPORT int zeMemGetAllocProperties(Context* context, const void* pointer, AllocationProperties* to, Device** at) {
  enum { unknown, of_host, of_device, of_both };
  if (!is(context)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  const Place place = runtime().place_of(pointer);  // of null it is unknown, as the driver answers
  const bool is_known = place.kind == Kind::device || place.kind == Kind::managed || place.kind == Kind::pinned;
  to->kind = place.kind == Kind::device    ? of_device
             : place.kind == Kind::managed ? of_both
             : place.kind == Kind::pinned  ? of_host
                                           : unknown;
  to->id = is_known ? place.allocation.id : 0;
  to->page_bytes = is_known ? memory_page_bytes : 0;
  if (at != nullptr) *at = shown_of(place);
  return success;
}
ZE_EXPORT int zeMemGetAddressRange(Context* context, const void* pointer, void** base, std::size_t* bytes) {
  constexpr int address_not_found = 0x78000021;
  if (!is(context)) return invalid_null_handle;
  if (pointer == nullptr) return invalid_null_pointer;
  const Place place = runtime().place_of(pointer);
  if (place.kind == Kind::host) return address_not_found;
  if (base != nullptr) *base = reinterpret_cast<void*>(place.allocation.start);
  if (bytes != nullptr) *bytes = place.allocation.bytes;
  return success;
}

int zexDriverImportExternalPointer(Driver* driver, void* start, std::size_t bytes) {
  return is(driver) ? code_of(runtime().register_host(start, bytes)) : invalid_null_handle;
}
int zexDriverReleaseImportedPointer(Driver* driver, void* start) {
  return is(driver) ? code_of(runtime().unregister_host(start)) : invalid_null_handle;
}
int zexDriverGetHostPointerBaseAddress(Driver* driver, void* pointer, void** base) {
  if (!is(driver)) return invalid_null_handle;
  if (base == nullptr) return invalid_null_pointer;
  const Place place = runtime().place_of(pointer);
  if (place.kind != Kind::registered) return invalid_argument;
  *base = reinterpret_cast<void*>(place.allocation.start);
  return success;
}

}  // namespace dryfly::gpu::level_zero
