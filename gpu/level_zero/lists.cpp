// Level Zero's command lists: how they are made, closed and emptied, and what they tell of themselves.
#include <stdlib.h>

#include "gpu/level_zero/calls.hpp"
#include "gpu/level_zero/commands.hpp"
#include "gpu/level_zero/node.hpp"

namespace dryfly::gpu::level_zero {

ZE_EXPORT int zeCommandListCreate(Context* context, Device* device, const ListDescription* description, List** to) {
  if (!is(context) || !is(device)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->ordinal >= queue_group_count) return invalid_argument;
  *to = make<List>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->context = context;
  (*to)->device = device;
  (*to)->description.ordinal = description->ordinal;
  return success;
}
ZE_EXPORT int zeCommandListCreateImmediate(Context* context, Device* device, const QueueDescription* description,
                                           List** to) {
  if (!is(context) || !is(device)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->ordinal >= queue_group_count) return invalid_argument;
  const On on(device->first);
  Stream* stream = nullptr;
  if (const Result result = streams().create(stream, false); result != Result::done) return code_of(result);
  *to = make<List>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->context = context;
  (*to)->device = device;
  (*to)->stream = stream;
  (*to)->description = *description;
  return success;
}
ZE_EXPORT int zeCommandListDestroy(List* list) {
  if (!is(list)) return invalid_null_handle;
  if (list->stream != nullptr) streams().destroy(list->stream);
  forget_commands(*list);
  free(list->commands);
  unmake(list);
  return success;
}
ZE_EXPORT int zeCommandListClose(List* list) {
  if (!is(list)) return invalid_null_handle;
  list->closed = list->stream == nullptr;
  return success;
}
ZE_EXPORT int zeCommandListReset(List* list) {
  if (!is(list)) return invalid_null_handle;
  list->closed = false;
  forget_commands(*list);
  return success;
}
ZE_EXPORT int zeCommandListHostSynchronize(List* list, std::uint64_t ns) {
  if (!is(list)) return invalid_null_handle;
  if (list->stream == nullptr) return invalid_argument;
  return code_of(streams().synchronize(list->stream, ps_of(ns)));
}
ZE_EXPORT int zeCommandListGetDeviceHandle(List* list, Device** to) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = list->device;
  return success;
}
ZE_EXPORT int zeCommandListGetContextHandle(List* list, Context** to) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = list->context;
  return success;
}
ZE_EXPORT int zeCommandListGetOrdinal(List* list, std::uint32_t* to) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = list->description.ordinal;
  return success;
}
ZE_EXPORT int zeCommandListIsImmediate(List* list, std::uint8_t* to) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = list->stream != nullptr ? 1 : 0;
  return success;
}

}  // namespace dryfly::gpu::level_zero
