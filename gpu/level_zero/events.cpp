// Level Zero's events and fences: what the host waits for.
#include <sched.h>

#include "gpu/level_zero/calls.hpp"
#include "gpu/level_zero/objects.hpp"

namespace dryfly::gpu::level_zero {

namespace {

// Until something signals it, for which another thread may be on its way.
int wait_for(Event* event, std::uint64_t ns) {
  std::uint64_t left_ps = ps_of(ns);
  while (!streams().is_recorded(event)) {
    const std::uint64_t step_ps = settings().query_ps;
    if (const Result result = streams().query(event); result != Result::done) return code_of(result);
    if (ns == 0 || left_ps < step_ps) return not_ready;
    if (left_ps != Streams::forever) left_ps -= step_ps;
    sched_yield();
  }
  return code_of(streams().synchronize(event, left_ps));
}

int query(Event* event) {
  const int code = code_of(streams().query(event));
  return code == success && !streams().is_recorded(event) ? not_ready : code;
}

}  // namespace

// Events.

ZE_EXPORT int zeEventPoolCreate(Context* context, const PoolDescription* description, std::uint32_t, Device**,
                                Pool** to) {
  if (!is(context)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->count == 0) return invalid_size;
  *to = make<Pool>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->count = description->count;
  (*to)->context = context;
  return success;
}
ZE_EXPORT int zeEventPoolDestroy(Pool* pool) {
  if (!is(pool)) return invalid_null_handle;
  unmake(pool);
  return success;
}
ZE_EXPORT int zeEventCreate(Pool* pool, const EventDescription* description, Signal** to) {
  if (!is(pool)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  if (description->index >= pool->count) return invalid_argument;
  Event* event = nullptr;
  if (const Result result = streams().create(event, false); result != Result::done) return code_of(result);
  *to = make<Signal>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->event = event;
  return success;
}
ZE_EXPORT int zeEventDestroy(Signal* event) {
  if (!is(event)) return invalid_null_handle;
  streams().destroy(event->event);
  unmake(event);
  return success;
}
ZE_EXPORT int zeEventHostSignal(Signal* event) {
  return is(event) ? code_of(streams().signal(event->event, nullptr)) : invalid_null_handle;
}
ZE_EXPORT int zeEventHostReset(Signal* event) {
  return is(event) ? code_of(streams().reset(event->event)) : invalid_null_handle;
}
ZE_EXPORT int zeEventQueryStatus(Signal* event) { return is(event) ? query(event->event) : invalid_null_handle; }
ZE_EXPORT int zeEventHostSynchronize(Signal* event, std::uint64_t ns) {
  return is(event) ? wait_for(event->event, ns) : invalid_null_handle;
}

// Fences.

ZE_EXPORT int zeFenceCreate(Queue* queue, const FenceDescription* description, Fence** to) {
  constexpr std::uint32_t signaled = 1;
  if (!is(queue)) return invalid_null_handle;
  if (description == nullptr || to == nullptr) return invalid_null_pointer;
  Event* event = nullptr;
  if (const Result result = streams().create(event, false); result != Result::done) return code_of(result);
  *to = make<Fence>();
  if (*to == nullptr) return out_of_host_memory;
  (*to)->event = event;
  if ((description->flags & signaled) != 0) streams().signal(event, nullptr);
  return success;
}
ZE_EXPORT int zeFenceDestroy(Fence* fence) {
  if (!is(fence)) return invalid_null_handle;
  streams().destroy(fence->event);
  unmake(fence);
  return success;
}
ZE_EXPORT int zeFenceReset(Fence* fence) {
  return is(fence) ? code_of(streams().reset(fence->event)) : invalid_null_handle;
}
ZE_EXPORT int zeFenceQueryStatus(Fence* fence) { return is(fence) ? query(fence->event) : invalid_null_handle; }
ZE_EXPORT int zeFenceHostSynchronize(Fence* fence, std::uint64_t ns) {
  return is(fence) ? wait_for(fence->event, ns) : invalid_null_handle;
}

}  // namespace dryfly::gpu::level_zero
