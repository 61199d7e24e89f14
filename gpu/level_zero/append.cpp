// What Level Zero's command lists take: other lists, barriers, events, copies, fills, and functions as kernels.
#include <string.h>

#include "gpu/kernels.hpp"
#include "gpu/level_zero/calls.hpp"
#include "gpu/level_zero/commands.hpp"
#include "gpu/level_zero/extensions.hpp"
#include "gpu/level_zero/node.hpp"

namespace dryfly::gpu::level_zero {

namespace {

int append_copy(List* list, void* to, const void* from, const Rows& rows, Signal* signal, std::uint32_t count,
                Signal** waits) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr || from == nullptr) return invalid_null_pointer;
  Command command{};
  command.kind = Command::copy;
  command.to = to;
  command.from = from;
  command.rows = rows;
  return append(list, &command, signal, count, waits);
}

}  // namespace

ZE_EXPORT int zeCommandListImmediateAppendCommandListsExp(List* list, std::uint32_t many, List** lists, Signal* signal,
                                                          std::uint32_t count, Signal** waits) {
  if (!is(list)) return invalid_null_handle;
  if (list->stream == nullptr || lists == nullptr) return invalid_argument;
  if (const int code = append(list, nullptr, nullptr, count, waits); code != success) return code;
  for (std::uint32_t i = 0; i < many; ++i) {
    if (!is(lists[i])) return invalid_null_handle;
    if (lists[i]->stream != nullptr || !lists[i]->closed) return invalid_argument;
    for (std::size_t k = 0; k < lists[i]->count; ++k) {
      if (const int code = add(*list, lists[i]->commands[k]); code != success) return code;
    }
  }
  return append(list, nullptr, signal, 0, nullptr);
}

ZE_EXPORT int zeCommandListAppendBarrier(List* list, Signal* signal, std::uint32_t count, Signal** waits) {
  return append(list, nullptr, signal, count, waits);
}
ZE_EXPORT int zeCommandListAppendMemoryRangesBarrier(List* list, std::uint32_t, const std::size_t*, const void**,
                                                     Signal* signal, std::uint32_t count, Signal** waits) {
  return append(list, nullptr, signal, count, waits);
}
ZE_EXPORT int zeCommandListAppendSignalEvent(List* list, Signal* event) {
  return is(event) ? append(list, nullptr, event, 0, nullptr) : invalid_null_handle;
}
ZE_EXPORT int zeCommandListAppendWaitOnEvents(List* list, std::uint32_t count, Signal** events) {
  return append(list, nullptr, nullptr, count, events);
}
ZE_EXPORT int zeCommandListAppendEventReset(List* list, Signal* event) {
  if (!is(list) || !is(event)) return invalid_null_handle;
  return list->closed ? static_cast<int>(invalid_argument) : add(*list, Command::reset, event);
}
ZE_EXPORT int zeCommandListAppendMemoryCopy(List* list, void* to, const void* from, std::size_t bytes, Signal* signal,
                                            std::uint32_t count, Signal** waits) {
  return append_copy(list, to, from, Rows{bytes, 1, bytes, bytes}, signal, count, waits);
}
ZE_EXPORT int zeCommandListAppendMemoryCopyFromContext(List* list, void* to, Context* context, const void* from,
                                                       std::size_t bytes, Signal* signal, std::uint32_t count,
                                                       Signal** waits) {
  if (!is(context)) return invalid_null_handle;
  return zeCommandListAppendMemoryCopy(list, to, from, bytes, signal, count, waits);
}
ZE_EXPORT int zeCommandListAppendMemoryCopyRegion(List* list, void* to, const CopyRegion* to_region,
                                                  std::uint32_t to_pitch, std::uint32_t to_slice, const void* from,
                                                  const CopyRegion* from_region, std::uint32_t from_pitch,
                                                  std::uint32_t from_slice, Signal* signal, std::uint32_t count,
                                                  Signal** waits) {
  if (to == nullptr || from == nullptr || to_region == nullptr || from_region == nullptr) return invalid_null_pointer;
  const CopyRegion &in = *to_region, &of = *from_region;
  if (in.width != of.width || in.height != of.height || in.depth != of.depth) return invalid_size;
  const std::uint64_t rows = in.height == 0 ? 1 : in.height, slices = in.depth == 0 ? 1 : in.depth;
  if (const int code = append(list, nullptr, nullptr, count, waits); code != success) return code;
  for (std::uint64_t i = 0; i < slices; ++i) {
    char* const target = static_cast<char*>(to) + (in.z + i) * to_slice + std::uint64_t{in.y} * to_pitch + in.x;
    const char* const source =
        static_cast<const char*>(from) + (of.z + i) * from_slice + std::uint64_t{of.y} * from_pitch + of.x;
    const Rows each{in.width, rows, to_pitch, from_pitch};
    if (const int code = append_copy(list, target, source, each, nullptr, 0, nullptr); code != success) return code;
  }
  return append(list, nullptr, signal, 0, nullptr);
}
ZE_EXPORT int zeCommandListAppendMemoryFill(List* list, void* to, const void* pattern, std::size_t pattern_bytes,
                                            std::size_t bytes, Signal* signal, std::uint32_t count, Signal** waits) {
  if (!is(list)) return invalid_null_handle;
  if (to == nullptr || pattern == nullptr) return invalid_null_pointer;
  if (pattern_bytes == 0 || pattern_bytes > Pattern::most || (pattern_bytes & (pattern_bytes - 1)) != 0) {
    return unsupported_size;
  }
  Command command{};
  command.kind = Command::fill;
  command.to = to;
  command.rows.width = bytes;
  command.pattern.count = pattern_bytes;
  memcpy(command.pattern.bytes, pattern, pattern_bytes);
  return append(list, &command, signal, count, waits);
}
// Where memory is does not change what a copy of it takes.
ZE_EXPORT int zeCommandListAppendMemoryPrefetch(List* list, const void*, std::size_t) {
  return is(list) ? success : invalid_null_handle;
}
ZE_EXPORT int zeCommandListAppendMemAdvise(List* list, Device* device, const void*, std::size_t, std::uint32_t) {
  return is(list) && is(device) ? success : invalid_null_handle;
}

int dryflyCommandListAppendHostKernel(List* list, void (*kernel)(void*), const void* argument, std::size_t bytes,
                                      Signal* signal, std::uint32_t count, Signal** waits) {
  const std::uint64_t work_ps = take_announced_ps(is(list) ? list->device->count : 1);
  if (!is(list)) return invalid_null_handle;
  if (kernel == nullptr || (argument == nullptr && bytes != 0)) return invalid_null_pointer;
  if ((queue_groups[list->description.ordinal].flags & queue_computes) == 0) return invalid_list_type;
  Command command{};
  command.kind = Command::kernel;
  command.host_kernel = make_host_kernel(kernel, argument, bytes, work_ps);
  if (command.host_kernel == nullptr) return out_of_host_memory;
  const std::size_t before = list->count;
  const int code = append(list, &command, signal, count, waits);
  if (list->stream == nullptr && code == success) return success;
  list->count = before;
  unmake(command.host_kernel);
  return code;
}

}  // namespace dryfly::gpu::level_zero
