#include "gpu/runtime.hpp"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <new>
#include <utility>

#include "gpu/device_clock.hpp"

namespace dryfly::gpu {

namespace {

constexpr std::uint64_t ps_per_s = 1'000'000'000'000;
constexpr std::uint64_t far_future = ~std::uint64_t{0};

// What a runtime keeps of one copy from pageable memory before its call comes back: so much it was seen to keep. The
// device takes it by pieces while the rest is being copied.
constexpr std::uint64_t staged_most = 1 << 20;
constexpr std::uint64_t staged_piece = 64 << 10;

thread_local int current_device = 0;
thread_local bool in_function = false;

std::uint64_t time_ps(std::uint64_t bytes, std::uint64_t bytes_per_s) {
  if (bytes_per_s == 0) return 0;
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bytes) * ps_per_s + bytes_per_s - 1) / bytes_per_s);
}

std::uint64_t later(std::uint64_t one, std::uint64_t other) { return one > other ? one : other; }

bool is_pageable(const Place& place) { return place.kind == Kind::host; }

// That the bytes end within the allocation, where the pointer is into memory of the runtime's.
bool is_within(const Place& place, const void* pointer, std::uint64_t bytes) {
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(pointer) - place.allocation.start;
  return place.kind == Kind::registered ||
         (offset < place.allocation.bytes && bytes <= place.allocation.bytes - offset);
}

// Null: all are taken.
template <typename Each>
Each* take(Each* all, int most, Slots& slots) {
  if (slots.free == 0) return slots.used < most ? &all[slots.used++] : nullptr;
  Each* const found = &all[slots.free - 1];
  slots.free = found->next;
  return found;
}

template <typename Each>
void give_back(Each* all, Each& one, Slots& slots) {
  one.taken = false;
  one.next = slots.free;
  slots.free = static_cast<int>(&one - all) + 1;
}

}  // namespace

// One call of the runtime: alone in it, with the copies made that are due. Outside virtual time nothing takes time, and
// every copy is due.
class Runtime::Call {
 public:
  explicit Call(Runtime& runtime) : Call(runtime, runtime.settings_.call_ps) {}
  Call(Runtime& runtime, std::uint64_t cost_ps)
      : runtime_(runtime), entered_(dryfly_device_enter != nullptr ? dryfly_device_enter() : -1) {
    pthread_mutex_lock(&runtime_.lock_);
    if (timed()) wait_until(now() + cost_ps);
    runtime_.settle(now());
  }
  ~Call() {
    pthread_mutex_unlock(&runtime_.lock_);
    if (timed()) dryfly_device_leave(entered_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool timed() const { return entered_ >= 0; }
  std::uint64_t now() const { return timed() ? dryfly_device_now() : far_future; }
  void wait_until(std::uint64_t at_ps) {
    if (!timed()) return;
    dryfly_device_wait(at_ps);
    runtime_.settle(now());
  }

 private:
  Runtime& runtime_;
  const int entered_;
};

// Made at the first call, so that a program may still set its mask; never destroyed, for programs free memory in
// destructors of their own.
Runtime& Runtime::get() {
  static Runtime* runtime = nullptr;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    void* const room = mmap(nullptr, sizeof(Runtime), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) abort();
    runtime = new (room) Runtime;
  });
  return *runtime;
}

Runtime::Runtime() : settings_(read_settings(getenv("DRYFLY_GPU"), masks_of_environment())) {
  pthread_mutex_init(&lock_, nullptr);
  memory_.open(settings_);
  void* const room = mmap(nullptr, sizeof(Event) * events_max, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) abort();
  events_ = static_cast<Event*>(room);
  for (int i = 0; i < settings_.devices; ++i) {
    default_[i] = {.end_ps = 0, .device = i, .blocking = true, .taken = true, .next = 0};
  }
}

int Runtime::device() const { return current_device; }

Result Runtime::usable() const {
  if (settings_.devices == 0) return Result::no_device;
  return in_function ? Result::not_permitted : Result::done;
}

Result Runtime::set_device(int device) {
  if (settings_.devices == 0) return Result::no_device;
  if (device < 0 || device >= settings_.devices) return Result::bad_value;
  current_device = device;
  return Result::done;
}

Result Runtime::allocate(Kind kind, std::uint64_t bytes, void*& pointer) {
  if (const Result result = usable(); result != Result::done) return result;
  pointer = nullptr;
  if (bytes == 0) return Result::done;
  const Call call(*this, settings_.allocation_ps);
  Range& range = kind == Kind::device    ? memory_.device(current_device)
                 : kind == Kind::managed ? memory_.managed()
                                         : memory_.pinned();
  std::uint64_t start = 0;
  if (!range.allocate(bytes, start)) return Result::out_of_memory;
  pointer = reinterpret_cast<void*>(start);
  return Result::done;
}

Result Runtime::release(void* pointer, bool of_host) {
  if (const Result result = usable(); result != Result::done) return result;
  if (pointer == nullptr) return Result::done;
  Call call(*this, settings_.allocation_ps);
  Range* const range = memory_.range_of(pointer);
  if (range == nullptr || (range == &memory_.pinned()) != of_host) return Result::bad_value;
  call.wait_until(end_of_all());
  return range->free(reinterpret_cast<std::uint64_t>(pointer)) ? Result::done : Result::bad_value;
}

Result Runtime::register_host(void* start, std::uint64_t bytes) {
  if (const Result result = usable(); result != Result::done) return result;
  if (start == nullptr || bytes == 0) return Result::bad_value;
  const Call call(*this, settings_.allocation_ps);
  if (memory_.range_of(start) != nullptr) return Result::bad_value;
  switch (memory_.add_host(start, bytes, current_device)) {
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
  if (const Result result = usable(); result != Result::done) return result;
  Call call(*this, settings_.allocation_ps);
  if (start == nullptr || memory_.range_of(start) != nullptr) return Result::bad_value;
  const Place place = memory_.place_of(start);
  if (place.kind == Kind::host) return Result::not_registered;
  call.wait_until(end_of_all());
  return memory_.remove_host(start) ? Result::done : Result::bad_value;
}

Result Runtime::make_synchronous(const void* pointer, bool synchronous) {
  if (const Result result = usable(); result != Result::done) return result;
  Call call(*this, settings_.query_ps);
  Allocation* const found = memory_.allocation_of(pointer);
  if (found == nullptr) return Result::bad_value;
  call.wait_until(end_of_all());
  found->synchronous = synchronous;
  return Result::done;
}

void Runtime::reached_by_nic(const void* pointer) {
  if (memory_.is_unknown(pointer)) return;
  pthread_mutex_lock(&lock_);
  const Allocation* const known = memory_.allocation_of(pointer);
  const bool is_quiet = pending_count_ == 0 && (known == nullptr || known->synchronous);
  pthread_mutex_unlock(&lock_);
  if (is_quiet) return;
  Call call(*this, 0);  // which does what is due
  Allocation* const found = memory_.allocation_of(pointer);
  if (found == nullptr || found->synchronous) return;
  call.wait_until(end_of_all());
  found->synchronous = true;
}

void Runtime::read_by_processor(const void* pointer, std::uint64_t bytes) {
  if (memory_.is_unknown(pointer)) return;
  pthread_mutex_lock(&lock_);
  const Place place = memory_.place_of(pointer);
  pthread_mutex_unlock(&lock_);
  if (place.kind != Kind::device) return;
  Call call(*this);
  if (!call.timed()) return;
  Stream own{.end_ps = 0, .device = place.device, .blocking = false, .taken = true, .next = 0};
  call.wait_until(put(own, engine(Way::out, place.device), call.now() + settings_.copy.latency_ps,
                      settings_.copy.step_ps + moving_ps(Way::out, bytes, true, 1)));
}

Result Runtime::show(const void* pointer, Handle& handle) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this, settings_.query_ps);
  return memory_.show(pointer, handle) ? Result::done : Result::bad_value;
}

Result Runtime::open(const Handle& handle, void*& pointer) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this, settings_.allocation_ps);
  std::uint64_t start = 0;
  switch (memory_.opened().add(handle, current_device, start)) {
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
  if (const Result result = usable(); result != Result::done) return result;
  Call call(*this, settings_.allocation_ps);
  call.wait_until(end_of_all());
  return memory_.opened().remove(reinterpret_cast<std::uint64_t>(pointer)) ? Result::done : Result::bad_value;
}

// MPI libraries ask about each buffer of each call, and most are host memory, for which no allocation is looked up.
Place Runtime::place_of(const void* pointer) {
  if (memory_.is_unknown(pointer)) return host_memory;
  pthread_mutex_lock(&lock_);
  const Place place = memory_.place_of(pointer);
  pthread_mutex_unlock(&lock_);
  return place;
}

void Runtime::memory_info(std::size_t& unused, std::size_t& all) {
  pthread_mutex_lock(&lock_);
  const Range& range = memory_.device(current_device);
  all = range.capacity();
  unused = all - range.used();
  pthread_mutex_unlock(&lock_);
}

std::uint64_t* Runtime::engine(Way way, int device) {
  Engines& engines = engines_[device];
  switch (way) {
    case Way::in:
      return &engines.in_ps;
    case Way::out:
      return &engines.out_ps;
    case Way::peer:
      return &engines.peer_ps;
    case Way::local:
      return &engines.local_ps;
    case Way::host:
      return nullptr;
  }
  return nullptr;
}

std::uint64_t Runtime::moving_ps(Way way, std::uint64_t bytes, bool pageable, int links) const {
  switch (way) {
    case Way::in:
    case Way::out: {
      const std::uint64_t by_link_ps = time_ps(bytes, settings_.link_bytes_per_s);
      return pageable ? later(by_link_ps, time_ps(bytes, settings_.pageable_bytes_per_s)) : by_link_ps;
    }
    case Way::peer:
      return time_ps(bytes, settings_.peer_bytes_per_s * static_cast<std::uint64_t>(links));
    case Way::local:
      return time_ps(2 * bytes, settings_.memory_bytes_per_s);
    case Way::host:
      return time_ps(bytes, settings_.pageable_bytes_per_s);
  }
  return 0;
}

// The default stream is done when the blocking streams of its device are, too; those have an end of their own.
std::uint64_t Runtime::end_of(const Stream& stream) const {
  std::uint64_t at_ps = stream.end_ps;
  if (&stream != &default_[stream.device]) return at_ps;
  for (int i = 0; i < stream_slots_.used; ++i) {
    const Stream& other = streams_[i];
    if (other.taken && other.blocking && other.device == stream.device) at_ps = later(at_ps, other.end_ps);
  }
  return at_ps;
}

std::uint64_t Runtime::begin_of(const Stream& stream) const {
  const std::uint64_t at_ps = end_of(stream);
  return stream.blocking ? later(at_ps, default_[stream.device].end_ps) : at_ps;
}

std::uint64_t Runtime::put(Stream& stream, std::uint64_t* engine, std::uint64_t begin_ps, std::uint64_t ps) {
  begin_ps = later(begin_ps, begin_of(stream));
  if (engine != nullptr) begin_ps = later(begin_ps, *engine);
  stream.end_ps = begin_ps + ps;
  if (engine != nullptr) *engine = stream.end_ps;
  ends_ps_[stream.device] = later(ends_ps_[stream.device], stream.end_ps);
  return stream.end_ps;
}

std::uint64_t Runtime::end_of_all() const {
  std::uint64_t at_ps = 0;
  for (int i = 0; i < settings_.devices; ++i) at_ps = later(at_ps, ends_ps_[i]);
  return at_ps;
}

Result Runtime::enqueue(const Pending& work) {
  if (pending_count_ == pending_room_) {
    const std::size_t room = pending_room_ == 0 ? 64 : 2 * pending_room_;
    auto* more = static_cast<Pending*>(realloc(pending_, room * sizeof *pending_));
    if (more == nullptr) return Result::out_of_memory;
    pending_ = more;
    pending_room_ = room;
  }
  std::size_t index = pending_count_;
  while (index > 0 && pending_[index - 1].at_ps > work.at_ps) --index;
  memmove(pending_ + index + 1, pending_ + index, (pending_count_ - index) * sizeof *pending_);
  pending_[index] = work;
  ++pending_count_;
  return Result::done;
}

// One piece of work at a time: a function that is called may call MPI, and that looks at pointers.
void Runtime::settle(std::uint64_t now_ps) {
  while (pending_count_ != 0 && pending_[0].at_ps <= now_ps) {
    const Pending work = pending_[0];
    --pending_count_;
    memmove(pending_, pending_ + 1, pending_count_ * sizeof *pending_);
    if (work.function != nullptr) {
      pthread_mutex_unlock(&lock_);
      in_function = true;
      work.function(work.to);
      in_function = false;
      pthread_mutex_lock(&lock_);
    } else if (work.from != nullptr) {
      for (std::uint64_t row = 0; row < work.rows.count; ++row) {
        memmove(static_cast<char*>(work.to) + row * work.rows.to_pitch,
                static_cast<const char*>(work.from) + row * work.rows.from_pitch, work.rows.width);
      }
    } else {
      memset(work.to, work.value, work.rows.width);
    }
    free(work.staged);
  }
}

Result Runtime::copy(void* to, const void* from, const Rows& rows, Stream* stream, Returning returning) {
  if (const Result result = usable(); result != Result::done) return result;
  Call call(*this);
  Stream* const in = known(stream);
  if (in == nullptr) return Result::bad_handle;
  const std::uint64_t bytes = rows.width * rows.count;
  if (bytes == 0) return Result::done;
  if (to == nullptr || from == nullptr) return Result::bad_value;
  const Place target = memory_.place_of(to);
  const Place source = memory_.place_of(from);
  const std::uint64_t to_span = (rows.count - 1) * rows.to_pitch + rows.width;
  const std::uint64_t from_span = (rows.count - 1) * rows.from_pitch + rows.width;
  if ((memory_.is_inside(to) && !is_within(target, to, to_span)) ||
      (memory_.is_inside(from) && !is_within(source, from, from_span))) {
    return Result::bad_value;
  }
  const bool to_device = target.kind == Kind::device;
  const bool from_device = source.kind == Kind::device;
  Way way = Way::host;
  if (to_device && from_device) way = target.unit == source.unit ? Way::local : Way::peer;
  if (to_device && !from_device) way = Way::in;
  if (!to_device && from_device) way = Way::out;
  const int device = from_device ? source.device : to_device ? target.device : in->device;
  const bool pageable = is_pageable(target) || is_pageable(source);
  Pending work{.to = to, .from = from, .rows = rows, .at_ps = 0, .value = 0, .staged = nullptr, .function = nullptr};
  if (way == Way::in && pageable && bytes <= staged_most) {
    work.staged = malloc(from_span);
    if (work.staged == nullptr) return Result::out_of_memory;
    memcpy(work.staged, from, from_span);
    work.from = work.staged;
    if (returning != Returning::at_once) call.wait_until(begin_of(*in));
    call.wait_until(call.now() + time_ps(bytes, settings_.pageable_bytes_per_s));
  }
  if (call.timed()) {
    const int links = way == Way::peer ? settings_.links[source.unit][target.unit] : 1;
    const Start start = way == Way::host ? Start{} : start_of(way);
    // What was staged goes beside the other copies.
    const bool is_staged = work.staged != nullptr;
    const std::uint64_t left = is_staged && bytes > staged_piece ? staged_piece : bytes;
    work.at_ps = put(*in, is_staged ? nullptr : engine(way, device), call.now() + start.latency_ps,
                     start.step_ps + moving_ps(way, left, pageable && !is_staged, links));
  }
  if (const Result result = enqueue(work); result != Result::done) {
    free(work.staged);
    return result;
  }
  const bool must_wait = way == Way::host || (pageable && work.staged == nullptr);
  const bool synchronous = target.allocation.synchronous || source.allocation.synchronous;
  const bool is_safe = !synchronous && (way == Way::local || way == Way::peer || work.staged != nullptr);
  if (must_wait || returning == Returning::when_done || (returning == Returning::when_safe && !is_safe)) {
    call.wait_until(work.at_ps);
  }
  if (!call.timed()) settle(far_future);
  return Result::done;
}

Result Runtime::fill(void* to, int value, std::uint64_t bytes, Stream* stream, Returning returning) {
  if (const Result result = usable(); result != Result::done) return result;
  Call call(*this);
  Stream* const in = known(stream);
  if (in == nullptr) return Result::bad_handle;
  if (bytes == 0) return Result::done;
  const Place target = memory_.place_of(to);
  if (target.kind == Kind::host || !is_within(target, to, bytes)) return Result::bad_value;
  Pending work{.to = to,
               .from = nullptr,
               .rows = {bytes, 1, bytes, bytes},
               .at_ps = 0,
               .value = value,
               .staged = nullptr,
               .function = nullptr};
  if (call.timed()) {
    work.at_ps = put(*in, engine(Way::local, target.device), call.now() + settings_.copy.latency_ps,
                     settings_.copy.step_ps + time_ps(bytes, settings_.memory_bytes_per_s));
  }
  if (const Result result = enqueue(work); result != Result::done) return result;
  const bool must_wait =
      target.kind == Kind::pinned || target.kind == Kind::registered || target.allocation.synchronous;
  if (returning == Returning::when_done || (returning == Returning::when_safe && must_wait)) {
    call.wait_until(work.at_ps);
  }
  if (!call.timed()) settle(far_future);
  return Result::done;
}

Result Runtime::call(Stream* stream, void (*function)(void*), void* argument, const Start* start) {
  if (const Result result = usable(); result != Result::done) return result;
  if (function == nullptr) return Result::bad_value;
  Call call(*this);
  Stream* const in = known(stream);
  if (in == nullptr) return Result::bad_handle;
  Pending work{
      .to = argument, .from = nullptr, .rows = {}, .at_ps = 0, .value = 0, .staged = nullptr, .function = function};
  const Start& takes = start != nullptr ? *start : settings_.local;
  if (call.timed()) work.at_ps = put(*in, nullptr, call.now() + takes.latency_ps, takes.step_ps);
  if (const Result result = enqueue(work); result != Result::done) return result;
  if (!call.timed()) settle(far_future);
  return Result::done;
}

// 1 and 2 are the runtime's names of the default stream: that of the device, and that of the thread.
Stream* Runtime::known(Stream* stream) {
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return &default_[current_device];
  const bool inside = stream >= streams_ && stream < streams_ + streams_max;
  return inside && stream->taken ? stream : nullptr;
}

Result Runtime::create(Stream*& stream, bool blocking) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this);
  Stream* const found = take(streams_, streams_max, stream_slots_);
  if (found == nullptr) return Result::out_of_memory;
  *found = {.end_ps = 0, .device = current_device, .blocking = blocking, .taken = true, .next = 0};
  stream = found;
  return Result::done;
}

// The work in it is done nevertheless.
Result Runtime::destroy(Stream* stream) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this);
  Stream* const found = known(stream);
  if (found == nullptr || found != stream) return Result::bad_handle;
  give_back(streams_, *found, stream_slots_);
  return Result::done;
}

Result Runtime::is_blocking(Stream* stream, bool& blocking) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this, settings_.query_ps);
  const Stream* const found = known(stream);
  if (found == nullptr) return Result::bad_handle;
  blocking = found->blocking;
  return Result::done;
}

Result Runtime::query(Stream* stream) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this);
  const Stream* const found = known(stream);
  if (found == nullptr) return Result::bad_handle;
  return end_of(*found) <= call.now() ? Result::done : Result::not_ready;
}

Result Runtime::synchronize(Stream* stream) {
  if (const Result result = usable(); result != Result::done) return result;
  Call call(*this);
  const Stream* const found = known(stream);
  if (found == nullptr) return Result::bad_handle;
  call.wait_until(end_of(*found));
  return Result::done;
}

Result Runtime::synchronize_device() {
  if (const Result result = usable(); result != Result::done) return result;
  Call call(*this);
  call.wait_until(ends_ps_[current_device]);
  return Result::done;
}

Result Runtime::wait(Stream* stream, Event* event) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this, settings_.query_ps);
  Stream* const found = known(stream);
  if (found == nullptr || !is_known(event)) return Result::bad_handle;
  if (event->recorded) found->end_ps = later(found->end_ps, event->at_ps);
  return Result::done;
}

bool Runtime::is_known(const Event* event) const {
  return event >= events_ && event < events_ + event_slots_.used && event->taken;
}

Result Runtime::create(Event*& event, bool timed) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this, settings_.query_ps);
  Event* const found = take(events_, events_max, event_slots_);
  if (found == nullptr) return Result::out_of_memory;
  *found = {.at_ps = 0, .timed = timed, .recorded = false, .taken = true, .next = 0};
  event = found;
  return Result::done;
}

Result Runtime::destroy(Event* event) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this, settings_.query_ps);
  if (!is_known(event)) return Result::bad_handle;
  give_back(events_, *event, event_slots_);
  return Result::done;
}

// An event is work of its own: it comes to pass a latency after its call, or behind the work before it.
Result Runtime::record(Event* event, Stream* stream) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this);
  Stream* const found = known(stream);
  if (found == nullptr || !is_known(event)) return Result::bad_handle;
  event->recorded = true;
  event->at_ps = call.timed() ? put(*found, nullptr, call.now() + settings_.copy.latency_ps, 0) : 0;
  return Result::done;
}

Result Runtime::query(Event* event) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this, settings_.query_ps);
  if (!is_known(event)) return Result::bad_handle;
  return !event->recorded || event->at_ps <= call.now() ? Result::done : Result::not_ready;
}

Result Runtime::synchronize(Event* event) {
  if (const Result result = usable(); result != Result::done) return result;
  Call call(*this, settings_.query_ps);
  if (!is_known(event)) return Result::bad_handle;
  if (event->recorded) call.wait_until(event->at_ps);
  return Result::done;
}

Result Runtime::elapsed(Event* begin, Event* end, float& ms) {
  if (const Result result = usable(); result != Result::done) return result;
  const Call call(*this, settings_.query_ps);
  if (!is_known(begin) || !is_known(end) || !begin->recorded || !end->recorded || !begin->timed || !end->timed) {
    return Result::bad_handle;
  }
  if (begin->at_ps > call.now() || end->at_ps > call.now()) return Result::not_ready;
  constexpr double ps_per_ms = 1e9;
  ms = static_cast<float>((static_cast<double>(end->at_ps) - static_cast<double>(begin->at_ps)) / ps_per_ms);
  return Result::done;
}

}  // namespace dryfly::gpu
