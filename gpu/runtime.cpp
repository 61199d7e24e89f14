#include "gpu/runtime.hpp"

namespace dryfly::gpu {

Runtime& Runtime::get() {
  static Runtime runtime(State::get());
  return runtime;
}

int Runtime::device() const { return current_device(); }

Result Runtime::set_device(int device) {
  if (state_.settings.devices == 0) return Result::no_device;
  if (device < 0 || device >= state_.settings.devices) return Result::bad_value;
  current_device() = device;
  return Result::done;
}

Result Runtime::allocate(Kind kind, std::uint64_t bytes, void*& pointer, std::uint64_t alignment) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  pointer = nullptr;
  if (bytes == 0) return Result::done;
  const Call call(state_, state_.settings.allocation_ps);
  Range& range = kind == Kind::device    ? state_.memory.device(current_device())
                 : kind == Kind::managed ? state_.memory.managed()
                                         : state_.memory.pinned();
  std::uint64_t start = 0;
  if (!range.allocate(bytes, start, alignment)) return Result::out_of_memory;
  pointer = reinterpret_cast<void*>(start);
  return Result::done;
}

void Runtime::mark_whole(const void* pointer) {
  pthread_mutex_lock(&state_.lock);
  if (Allocation* const found = state_.memory.allocation_of(pointer); found != nullptr) found->whole = true;
  pthread_mutex_unlock(&state_.lock);
}

Result Runtime::release(void* pointer, bool of_host) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  if (pointer == nullptr) return Result::done;
  Call call(state_, state_.settings.allocation_ps);
  Range* const range = state_.memory.range_of(pointer);
  if (range == nullptr || (range == &state_.memory.pinned()) != of_host) return Result::bad_value;
  if (const Result result = call.wait_for_all(); result != Result::done) return result;
  return range->free(reinterpret_cast<std::uint64_t>(pointer)) ? Result::done : Result::bad_value;
}

Result Runtime::register_host(void* start, std::uint64_t bytes) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  if (start == nullptr || bytes == 0) return Result::bad_value;
  const Call call(state_, state_.settings.allocation_ps);
  if (state_.memory.range_of(start) != nullptr) return Result::bad_value;
  switch (state_.memory.add_host(start, bytes, current_device())) {
    case Memory::Registering::done:
      return Result::done;
    case Memory::Registering::overlaps:
      return Result::already;
    case Memory::Registering::no_room:
      return Result::out_of_memory;
  }
  return Result::bad_value;
}

Result Runtime::unregister_host(void* start) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_, state_.settings.allocation_ps);
  if (start == nullptr || state_.memory.range_of(start) != nullptr) return Result::bad_value;
  const Place place = state_.memory.place_of(start);
  if (place.kind == Kind::host) return Result::not_registered;
  if (const Result result = call.wait_for_all(); result != Result::done) return result;
  return state_.memory.remove_host(start) ? Result::done : Result::bad_value;
}

Result Runtime::make_synchronous(const void* pointer, bool synchronous) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_, state_.settings.query_ps);
  if (state_.memory.allocation_of(pointer) == nullptr) return Result::bad_value;
  if (const Result result = call.wait_for_all(); result != Result::done) return result;
  // Another thread may have given it back meanwhile.
  Allocation* const found = state_.memory.allocation_of(pointer);
  if (found == nullptr) return Result::bad_value;
  found->synchronous = synchronous;
  return Result::done;
}

void Runtime::reached_by_nic(const void* pointer) {
  if (state_.memory.is_unknown(pointer)) return;
  pthread_mutex_lock(&state_.lock);
  const Allocation* const known = state_.memory.allocation_of(pointer);
  const bool is_quiet = state_.pending.is_empty() && (known == nullptr || known->synchronous);
  pthread_mutex_unlock(&state_.lock);
  if (is_quiet) return;
  Call call(state_, 0);  // which does what is due
  const Allocation* const before = state_.memory.allocation_of(pointer);
  if (before == nullptr || before->synchronous) return;
  call.wait_until(state_.timeline.end_of_all());
  if (Allocation* const found = state_.memory.allocation_of(pointer); found != nullptr) found->synchronous = true;
}

void Runtime::read_by_processor(const void* pointer, std::uint64_t bytes) {
  if (state_.memory.is_unknown(pointer)) return;
  pthread_mutex_lock(&state_.lock);
  const Place place = state_.memory.place_of(pointer);
  pthread_mutex_unlock(&state_.lock);
  if (place.kind != Kind::device) return;
  Call call(state_);
  if (!call.timed()) return;
  Stream own{.end_ps = 0, .device = place.device, .blocking = false, .taken = true, .next = 0};
  call.wait_until(
      state_.timeline.put(own, Way::out, place.device, call.now() + state_.settings.copy.latency_ps,
                          state_.settings.copy.step_ps + moving_ps(state_.settings, Way::out, bytes, true, 0)));
}

Result Runtime::show(const void* pointer, Handle& handle) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  return state_.memory.show(pointer, handle) ? Result::done : Result::bad_value;
}

Result Runtime::open(const Handle& handle, void*& pointer) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.allocation_ps);
  std::uint64_t start = 0;
  switch (state_.memory.opened().add(handle, current_device(), start)) {
    case Opening::done:
      pointer = reinterpret_cast<void*>(start);
      return Result::done;
    case Opening::own:
      return Result::own_handle;
    case Opening::bad_handle:
      return Result::bad_value;
    case Opening::no_room:
      return Result::out_of_memory;
  }
  return Result::bad_value;
}

Result Runtime::close(void* pointer) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_, state_.settings.allocation_ps);
  if (const Result result = call.wait_for_all(); result != Result::done) return result;
  return state_.memory.opened().remove(reinterpret_cast<std::uint64_t>(pointer)) ? Result::done : Result::bad_value;
}

// MPI libraries ask about each buffer of each call, and most are host memory, for which no allocation is looked up.
Place Runtime::place_of(const void* pointer) {
  if (state_.memory.is_unknown(pointer)) return host_memory;
  pthread_mutex_lock(&state_.lock);
  const Place place = state_.memory.place_of(pointer);
  pthread_mutex_unlock(&state_.lock);
  return place;
}

void Runtime::memory_info(std::size_t& unused, std::size_t& all) {
  pthread_mutex_lock(&state_.lock);
  const Range& range = state_.memory.device(current_device());
  all = range.capacity();
  unused = all - range.used();
  pthread_mutex_unlock(&state_.lock);
}

}  // namespace dryfly::gpu
