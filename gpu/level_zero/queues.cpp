// Level Zero's command queues, which execute lists.
#include "gpu/level_zero/calls.hpp"
#include "gpu/level_zero/commands.hpp"
#include "gpu/level_zero/node.hpp"

namespace dryfly::gpu::level_zero {

ZE_EXPORT int zeCommandQueueCreate(Context* context, Device* device, const QueueDescription* description, Queue** to) {
  if (!is(context) || !is(device)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->ordinal >= queue_group_count) return invalid_argument;
  const On on(device->first);
  Stream* stream = nullptr;
  if (const Result result = streams().create(stream, false); result != Result::done) return code_of(result);
  *to = make<Queue>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->device = device;
  (*to)->stream = stream;
  (*to)->description = *description;
  return success;
}
ZE_EXPORT int zeCommandQueueDestroy(Queue* queue) {
  if (!is(queue)) return invalid_null_handle;
  streams().destroy(queue->stream);
  unmake(queue);
  return success;
}
ZE_EXPORT int zeCommandQueueExecuteCommandLists(Queue* queue, std::uint32_t count, List** lists, Fence* fence) {
  if (!is(queue) || (fence != nullptr && !is(fence))) return invalid_null_handle;
  if (lists == nullptr) return invalid_null_pointer;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!is(lists[i])) return invalid_null_handle;
    if (lists[i]->stream != nullptr || !lists[i]->closed) return invalid_argument;
    for (std::size_t k = 0; k < lists[i]->count; ++k) {
      const int code = perform(queue->stream, *queue->device, lists[i]->commands[k]);
      if (code != success) return code;
    }
  }
  if (fence != nullptr) streams().signal(fence->event, queue->stream);
  return queue->description.mode == synchronous ? code_of(streams().synchronize(queue->stream)) : success;
}
ZE_EXPORT int zeCommandQueueSynchronize(Queue* queue, std::uint64_t ns) {
  return is(queue) ? code_of(streams().synchronize(queue->stream, ps_of(ns))) : invalid_null_handle;
}
ZE_EXPORT int zeCommandQueueGetOrdinal(Queue* queue, std::uint32_t* to) {
  if (!is(queue)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = queue->description.ordinal;
  return success;
}
ZE_EXPORT int zeCommandQueueGetIndex(Queue* queue, std::uint32_t* to) {
  if (!is(queue)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = queue->description.index;
  return success;
}

}  // namespace dryfly::gpu::level_zero
