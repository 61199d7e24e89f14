#include "gpu/streams.hpp"

#include <stdlib.h>
#include <string.h>

namespace dryfly::gpu {

namespace {

// What a runtime keeps of one copy from pageable memory before its call comes back: so much it was seen to keep. The
// device takes it by pieces while the rest is being copied.
constexpr std::uint64_t staged_most = 1 << 20;
constexpr std::uint64_t staged_piece = 64 << 10;

bool is_pageable(const Place& place) { return place.kind == Kind::host; }

// That the bytes end within the allocation, where the pointer is into memory of the runtime's.
bool is_within(const Place& place, const void* pointer, std::uint64_t bytes) {
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(pointer) - place.allocation.start;
  return place.kind == Kind::registered ||
         (offset < place.allocation.bytes && bytes <= place.allocation.bytes - offset);
}

Result wait_for(Call& call, std::uint64_t at_ps, std::uint64_t within_ps) {
  if (!call.timed()) return Result::done;
  const std::uint64_t now_ps = call.now();
  if (at_ps > now_ps && at_ps - now_ps > within_ps) {
    call.wait_until(now_ps + within_ps);
    return Result::not_ready;
  }
  call.wait_until(at_ps);
  return Result::done;
}

}  // namespace

Streams& Streams::get() {
  static Streams streams(State::get());
  return streams;
}

Result Streams::copy(void* to, const void* from, const Rows& rows, Stream* stream, Returning returning) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_);
  Stream* const in = state_.timeline.known(stream, current_device());
  if (in == nullptr) return Result::bad_handle;
  const std::uint64_t bytes = rows.width * rows.count;
  if (bytes == 0) return Result::done;
  if (to == nullptr || from == nullptr) return Result::bad_value;
  const Place target = state_.memory.place_of(to);
  const Place source = state_.memory.place_of(from);
  const std::uint64_t to_span = (rows.count - 1) * rows.to_pitch + rows.width;
  const std::uint64_t from_span = (rows.count - 1) * rows.from_pitch + rows.width;
  if ((state_.memory.is_inside(to) && !is_within(target, to, to_span)) ||
      (state_.memory.is_inside(from) && !is_within(source, from, from_span))) {
    return Result::bad_value;
  }
  const bool to_device = target.kind == Kind::device;
  const bool from_device = source.kind == Kind::device;
  Way way = Way::host;
  if (to_device && from_device) way = target.unit == source.unit ? Way::local : Way::peer;
  if (to_device && !from_device) way = Way::in;
  if (!to_device && from_device) way = Way::out;
  const int device = from_device ? source.device : to_device ? target.device : in->device;
  // Level Zero's driver makes the host's memory known to the device for the time of a copy.
  const bool pageable = state_.settings.api != Api::level_zero && (is_pageable(target) || is_pageable(source));
  Work work{.to = to, .from = from, .rows = rows, .at_ps = 0, .pattern = {}, .staged = nullptr, .function = nullptr};
  if (way == Way::in && pageable && bytes <= staged_most) {
    work.staged = malloc(from_span);
    if (work.staged == nullptr) return Result::out_of_memory;
    memcpy(work.staged, from, from_span);
    work.from = work.staged;
    if (returning != Returning::at_once) call.wait_until(state_.timeline.begin_of(*in));
    call.wait_until(call.now() + time_ps(bytes, state_.settings.pageable_bytes_per_s));
  }
  if (call.timed()) {
    const Settings& settings = state_.settings;
    const std::uint64_t peer = way == Way::peer ? peer_rate(settings, source.unit, target.unit) : 0;
    const Start start = way == Way::host ? Start{} : way == Way::local ? settings.local : settings.copy;
    // What was staged goes beside the other copies.
    const bool is_staged = work.staged != nullptr;
    const std::uint64_t left = is_staged && bytes > staged_piece ? staged_piece : bytes;
    work.at_ps = state_.timeline.put(*in, is_staged ? Way::host : way, device, call.now() + start.latency_ps,
                                     start.step_ps + moving_ps(settings, way, left, pageable && !is_staged, peer));
  }
  if (!state_.pending.add(work)) {
    free(work.staged);
    return Result::out_of_memory;
  }
  const bool must_wait = way == Way::host || (pageable && work.staged == nullptr);
  const bool synchronous = target.allocation.synchronous || source.allocation.synchronous;
  const bool is_safe = !synchronous && (way == Way::local || way == Way::peer || work.staged != nullptr);
  if (must_wait || returning == Returning::when_done || (returning == Returning::when_safe && !is_safe)) {
    call.wait_until(work.at_ps);
  } else if (returning == Returning::when_safe) {
    state_.unstreamed_ps = later(state_.unstreamed_ps, work.at_ps);
  }
  call.finish_untimed();
  return Result::done;
}

Result Streams::fill(void* to, const Pattern& pattern, std::uint64_t bytes, Stream* stream, Returning returning) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_);
  Stream* const in = state_.timeline.known(stream, current_device());
  if (in == nullptr) return Result::bad_handle;
  if (bytes == 0) return Result::done;
  const Place target = state_.memory.place_of(to);
  if (target.kind == Kind::host || !is_within(target, to, bytes)) return Result::bad_value;
  Work work{.to = to,
            .from = nullptr,
            .rows = {bytes, 1, bytes, bytes},
            .at_ps = 0,
            .pattern = pattern,
            .staged = nullptr,
            .function = nullptr};
  if (call.timed()) {
    work.at_ps = state_.timeline.put(*in, Way::local, target.device, call.now() + state_.settings.copy.latency_ps,
                                     state_.settings.copy.step_ps + time_ps(bytes, state_.settings.memory_bytes_per_s));
  }
  if (!state_.pending.add(work)) return Result::out_of_memory;
  const bool must_wait =
      target.kind == Kind::pinned || target.kind == Kind::registered || target.allocation.synchronous;
  if (returning == Returning::when_done || (returning == Returning::when_safe && must_wait)) {
    call.wait_until(work.at_ps);
  } else if (returning == Returning::when_safe) {
    state_.unstreamed_ps = later(state_.unstreamed_ps, work.at_ps);
  }
  call.finish_untimed();
  return Result::done;
}

void Streams::before_mpi() {
  if (state_.pending.is_empty() || state_.usable() != Result::done) return;
  Call call(state_, 0);
  call.wait_until(state_.unstreamed_ps);
}

Result Streams::call(Stream* stream, void (*function)(void*), void* argument, const Start* start) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  if (function == nullptr) return Result::bad_value;
  Call call(state_);
  Stream* const in = state_.timeline.known(stream, current_device());
  if (in == nullptr) return Result::bad_handle;
  Work work{
      .to = argument, .from = nullptr, .rows = {}, .at_ps = 0, .pattern = {}, .staged = nullptr, .function = function};
  const Start& takes = start != nullptr ? *start : state_.settings.local;
  if (call.timed()) {
    work.at_ps = state_.timeline.put(*in, Way::host, 0, call.now() + takes.latency_ps, takes.step_ps);
  }
  if (!state_.pending.add(work)) return Result::out_of_memory;
  call.finish_untimed();
  return Result::done;
}

Result Streams::is_blocking(Stream* stream, bool& blocking) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  const Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr) return Result::bad_handle;
  blocking = found->blocking;
  return Result::done;
}

Result Streams::synchronize_device() {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_);
  call.wait_until(state_.timeline.end_of_device(current_device()));
  return Result::done;
}

Result Streams::wait(Stream* stream, Event* event) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr || !state_.timeline.is_known(event)) return Result::bad_handle;
  if (event->recorded) found->end_ps = later(found->end_ps, event->at_ps);
  return Result::done;
}

// An event is work of its own: it comes to pass a latency after its call, or behind the work before it.
Result Streams::record(Event* event, Stream* stream) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_);
  Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr || !state_.timeline.is_known(event)) return Result::bad_handle;
  event->recorded = true;
  event->at_ps =
      call.timed() ? state_.timeline.put(*found, Way::host, 0, call.now() + state_.settings.copy.latency_ps, 0) : 0;
  return Result::done;
}

Result Streams::elapsed(Event* begin, Event* end, float& ms) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  if (!state_.timeline.is_known(begin) || !state_.timeline.is_known(end) || !begin->recorded || !end->recorded ||
      !begin->timed || !end->timed) {
    return Result::bad_handle;
  }
  if (begin->at_ps > call.now() || end->at_ps > call.now()) return Result::not_ready;
  constexpr double ps_per_ms = 1e9;
  ms = static_cast<float>((static_cast<double>(end->at_ps) - static_cast<double>(begin->at_ps)) / ps_per_ms);
  return Result::done;
}

Result Streams::create(Stream*& stream, bool blocking) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_);
  Stream* const made = state_.timeline.create_stream(current_device(), blocking);
  if (made == nullptr) return Result::out_of_memory;
  stream = made;
  return Result::done;
}

Result Streams::create(Event*& event, bool timed) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  Event* const made = state_.timeline.create_event(timed);
  if (made == nullptr) return Result::out_of_memory;
  event = made;
  return Result::done;
}

// The work in it is done nevertheless.
Result Streams::destroy(Stream* stream) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_);
  Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr || found != stream) return Result::bad_handle;
  state_.timeline.destroy(*found);
  return Result::done;
}

Result Streams::destroy(Event* event) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  if (!state_.timeline.is_known(event)) return Result::bad_handle;
  state_.timeline.destroy(*event);
  return Result::done;
}

Result Streams::query(Stream* stream) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_);
  const Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr) return Result::bad_handle;
  return state_.timeline.end_of(*found) <= call.now() ? Result::done : Result::not_ready;
}

Result Streams::query(Event* event) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  if (!state_.timeline.is_known(event)) return Result::bad_handle;
  return !event->recorded || event->at_ps <= call.now() ? Result::done : Result::not_ready;
}

Result Streams::synchronize(Stream* stream, std::uint64_t within_ps) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_);
  const Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr) return Result::bad_handle;
  return wait_for(call, state_.timeline.end_of(*found), within_ps);
}

Result Streams::synchronize(Event* event, std::uint64_t within_ps) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_, state_.settings.query_ps);
  if (!state_.timeline.is_known(event)) return Result::bad_handle;
  return event->recorded ? wait_for(call, event->at_ps, within_ps) : Result::done;
}

Result Streams::signal(Event* event, Stream* stream) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, 0);
  const Stream* const found = stream != nullptr ? state_.timeline.known(stream, current_device()) : nullptr;
  if (!state_.timeline.is_known(event) || (stream != nullptr && found == nullptr)) return Result::bad_handle;
  event->recorded = true;
  event->at_ps = call.timed() && found != nullptr ? state_.timeline.end_of(*found) : 0;
  return Result::done;
}

Result Streams::reset(Event* event) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, 0);
  if (!state_.timeline.is_known(event)) return Result::bad_handle;
  event->recorded = false;
  return Result::done;
}

bool Streams::is_recorded(const Event* event) {
  pthread_mutex_lock(&state_.lock);
  const bool yes = state_.timeline.is_known(event) && event->recorded;
  pthread_mutex_unlock(&state_.lock);
  return yes;
}

}  // namespace dryfly::gpu
