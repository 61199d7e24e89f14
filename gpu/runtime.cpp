#include "gpu/runtime.hpp"

#include <stdio.h>
#include <sys/sysinfo.h>

namespace dryfly::gpu {

namespace {

// What the calls take beside those that find room in a chunk that is there. Of pinned memory each page is taken,
// cleared and made known to the devices; to give them back takes a third of it, and of registered ones half.
constexpr std::uint64_t pinned_chunk = 2 << 20;

std::uint64_t taking_ps(const Settings& settings, Kind kind, std::uint64_t bytes) {
  if (kind != Kind::pinned) return settings.allocation_ps - settings.call_ps;
  return time_ps(bytes > pinned_chunk ? bytes : pinned_chunk, settings.pages.pinning_bytes_per_s);
}
// Pages that are written to are this computer's: a process that has more of them than there are is ended by the system.
void say_what_exceeds_this_computer(const Memory& memory) {
  static bool said = false;
  static const std::uint64_t there = [] {
    struct sysinfo facts;
    return sysinfo(&facts) == 0 ? std::uint64_t{facts.totalram} * facts.mem_unit : ~std::uint64_t{0};
  }();
  const std::uint64_t taken = memory.used();
  if (said || taken <= there) return;
  said = true;
  constexpr double gib = 1 << 30;
  fprintf(stderr,
          "dryfly: a rank has taken %.1f GiB of GPUs' memory, and this computer has %.1f: what of it is written to has "
          "to fit, or the system ends the rank\n",
          static_cast<double>(taken) / gib, static_cast<double>(there) / gib);
}

std::uint64_t giving_back_ps(const Settings& settings, Kind kind, std::uint64_t bytes) {
  return kind == Kind::pinned ? taking_ps(settings, kind, bytes) / 3 : taking_ps(settings, kind, bytes);
}

}  // namespace

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
  Call call(state_);
  Range& range = kind == Kind::device    ? state_.memory.device(current_device())
                 : kind == Kind::managed ? state_.memory.managed()
                                         : state_.memory.pinned();
  std::uint64_t start = 0;
  if (!range.allocate(bytes, start, alignment)) return Result::out_of_memory;
  pointer = reinterpret_cast<void*>(start);
  say_what_exceeds_this_computer(state_.memory);
  if (range.is_alone(*range.at(start))) call.wait_until(call.now() + taking_ps(state_.settings, kind, bytes));
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
  Call call(state_);
  Range* const range = state_.memory.range_of(pointer);
  if (range == nullptr || (range == &state_.memory.pinned()) != of_host) return Result::bad_value;
  const auto start = reinterpret_cast<std::uint64_t>(pointer);
  Allocation* const found = range->at(start);
  if (found == nullptr || found->start != start || found->leaving) return Result::bad_value;
  const Place place = state_.memory.place_of(pointer);
  // Of a pool's memory the program says itself that nobody uses it any more.
  if (found->pool != 0) {
    const bool is_given = state_.pools.give_back(*found, place.device, nullptr, call.now());
    return is_given ? Result::done : Result::out_of_memory;
  }
  if (range->is_alone(*found)) {
    call.wait_until(call.now() + giving_back_ps(state_.settings, place.kind, found->bytes));
  }
  if (const Result result = call.wait_for_all(); result != Result::done) return result;
  return range->free(start) ? Result::done : Result::bad_value;
}

MemoryPool* Runtime::pool(int device, bool standard) {
  pthread_mutex_lock(&state_.lock);
  MemoryPool* const found = standard ? &state_.pools.standard(device) : state_.pools.current(device);
  pthread_mutex_unlock(&state_.lock);
  return found;
}

Result Runtime::set_pool(int device, MemoryPool* pool) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  if (state_.pools.known(pool) == nullptr || pool->device != device) return Result::bad_value;
  state_.pools.current(device) = pool;
  return Result::done;
}

Result Runtime::create_pool(int device, MemoryPool*& pool) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_);
  MemoryPool* const made = state_.pools.create(device);
  if (made == nullptr) return Result::out_of_memory;
  pool = made;
  return Result::done;
}

Result Runtime::destroy(MemoryPool* pool) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_);
  if (state_.pools.known(pool) == nullptr) return Result::bad_value;
  return state_.pools.destroy(*pool) ? Result::done : Result::bad_value;
}

Result Runtime::trim(MemoryPool* pool, std::uint64_t keep) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_);
  if (state_.pools.known(pool) == nullptr) return Result::bad_value;
  state_.pools.trim(*pool, keep, call.now());
  return Result::done;
}

Result Runtime::read(MemoryPool* pool, int attribute, void* value) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  if (state_.pools.known(pool) == nullptr || value == nullptr) return Result::bad_value;
  return state_.pools.read(*pool, static_cast<PoolAttribute>(attribute), value) ? Result::done : Result::bad_value;
}

Result Runtime::write(MemoryPool* pool, int attribute, const void* value) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  if (state_.pools.known(pool) == nullptr || value == nullptr) return Result::bad_value;
  return state_.pools.write(*pool, static_cast<PoolAttribute>(attribute), value) ? Result::done : Result::bad_value;
}

Result Runtime::take_in_stream(MemoryPool* pool, std::uint64_t bytes, Stream* stream, void*& pointer) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_, state_.settings.short_call_ps);
  const Stream* const in = state_.timeline.known(stream, current_device());
  if (in == nullptr) return Result::bad_handle;
  if (pool == nullptr) pool = state_.pools.current(in->device);
  if (state_.pools.known(pool) == nullptr) return Result::bad_value;
  pointer = nullptr;
  if (bytes == 0) return Result::done;
  std::uint64_t start = 0;
  bool reserves = false;
  if (!state_.pools.take(*pool, bytes, *in, call.now(), start, reserves)) return Result::out_of_memory;
  pointer = reinterpret_cast<void*>(start);
  if (reserves) call.wait_until(call.now() + state_.settings.allocation_ps);
  return Result::done;
}

Result Runtime::give_back_in_stream(void* pointer, Stream* stream) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.short_call_ps);
  const Stream* const in = state_.timeline.known(stream, current_device());
  if (in == nullptr) return Result::bad_handle;
  if (pointer == nullptr) return Result::done;
  Allocation* const found = state_.memory.allocation_of(pointer);
  if (found == nullptr || found->start != reinterpret_cast<std::uint64_t>(pointer)) return Result::bad_value;
  const int device = state_.memory.place_of(pointer).device;
  return state_.pools.give_back(*found, device, in, call.now()) ? Result::done : Result::out_of_memory;
}

Result Runtime::register_host(void* start, std::uint64_t bytes) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  if (start == nullptr || bytes == 0) return Result::bad_value;
  Call call(state_, state_.settings.allocation_ps);
  if (state_.memory.range_of(start) != nullptr) return Result::bad_value;
  call.wait_until(call.now() + time_ps(bytes, state_.settings.pages.registration_bytes_per_s));
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
  call.wait_until(call.now() + time_ps(place.allocation.bytes, state_.settings.pages.registration_bytes_per_s) / 2);
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

void Runtime::reached_by_nic(const void* pointer, bool synchronous) {
  if (state_.memory.is_unknown(pointer)) return;
  pthread_mutex_lock(&state_.lock);
  const Allocation* const known = state_.memory.allocation_of(pointer);
  const bool is_quiet = state_.pending.is_empty() && (known == nullptr || known->synchronous || !synchronous);
  pthread_mutex_unlock(&state_.lock);
  if (is_quiet) return;
  Call call(state_, 0);  // which does what is due
  const Allocation* const before = state_.memory.allocation_of(pointer);
  if (before == nullptr || before->synchronous || !synchronous) return;
  call.wait_until(state_.timeline.end_of_all());
  if (Allocation* const found = state_.memory.allocation_of(pointer); found != nullptr) found->synchronous = true;
}

int Runtime::device_of(const void* pointer) {
  if (state_.memory.is_unknown(pointer)) return -1;
  pthread_mutex_lock(&state_.lock);
  const Place place = state_.memory.place_of(pointer);
  pthread_mutex_unlock(&state_.lock);
  return place.kind == Kind::device ? place.device : -1;
}

void Runtime::copied_by_runtime(const void* pointer, std::uint64_t bytes, Way way, bool pageable) {
  const int device = device_of(pointer);
  if (device < 0) return;
  Call call(state_);
  if (!call.timed()) return;
  const Settings& settings = state_.settings;
  // The call comes back when the runtime has the bytes, as for a program's copy.
  if (way == Way::in && pageable && bytes <= staged_most && settings.api != Api::level_zero) {
    call.wait_until(call.now() + time_ps(bytes, settings.pageable_bytes_per_s));
    return;
  }
  Stream own{.end_ps = 0, .device = device, .blocking = false, .taken = true, .next = 0};
  call.wait_until(state_.timeline.put(own, way, device, call.now() + settings.copy.latency_ps,
                                      settings.copy.step_ps + moving_ps(settings, way, bytes, pageable, 0)));
}

void Runtime::copied_by_processor(const void* pointer, std::uint64_t bytes, Way way) {
  if (device_of(pointer) < 0) return;
  Call call(state_, 0);
  const HostAccess& access = way == Way::in ? state_.settings.store : state_.settings.load;
  call.wait_until(call.now() + access.latency_ps + time_ps(bytes, access.bytes_per_s));
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

bool Runtime::is_whole(const void* pointer, std::uint64_t bytes) {
  pthread_mutex_lock(&state_.lock);
  const Place place = state_.memory.place_of(pointer);
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(pointer) - place.allocation.start;
  const bool yes = !state_.memory.is_inside(pointer) || (place.kind != Kind::host && offset < place.allocation.bytes &&
                                                         bytes <= place.allocation.bytes - offset);
  pthread_mutex_unlock(&state_.lock);
  return yes;
}

void Runtime::memory_info(std::size_t& unused, std::size_t& all) {
  pthread_mutex_lock(&state_.lock);
  const Range& range = state_.memory.device(current_device());
  all = range.capacity();
  unused = all - (range.used() < all ? range.used() : all);  // the last chunk may reach over the end
  pthread_mutex_unlock(&state_.lock);
}

}  // namespace dryfly::gpu
