#include "gpu/streams.hpp"

#include <stdlib.h>
#include <string.h>

namespace dryfly::gpu {

namespace {

// What was staged the device takes by pieces while the rest is being copied.
constexpr std::uint64_t staged_piece = 64 << 10;

bool is_pageable(const Place& place) { return place.kind == Kind::host; }

// That the bytes end within the allocation, where the pointer is into memory of the runtime's.
bool is_within(const Place& place, const void* pointer, std::uint64_t bytes) {
  const std::uint64_t offset = reinterpret_cast<std::uint64_t>(pointer) - place.allocation.start;
  return place.kind == Kind::registered ||
         (offset < place.allocation.bytes && bytes <= place.allocation.bytes - offset);
}

Result wait_within(Call& call, std::uint64_t at_ps, std::uint64_t within_ps) {
  if (!call.timed()) return Result::done;
  const std::uint64_t now_ps = call.now();
  if (at_ps > now_ps && at_ps - now_ps > within_ps) {
    call.wait_until(now_ps + within_ps);
    return Result::not_ready;
  }
  call.wait_until(at_ps);
  return Result::done;
}

Way way_between(const Place& source, const Place& target) {
  const bool from_device = source.kind == Kind::device;
  if (target.kind != Kind::device) return from_device ? Way::out : Way::host;
  if (!from_device) return Way::in;
  return target.unit == source.unit ? Way::local : Way::peer;
}

// Work was put into the stream: what its call waits for. What is held is waited for where nothing else says that it is
// over when the program calls MPI.
Result finish(Call& call, State& state, const Stream& in, std::uint64_t end_ps, bool comes_back_done,
              Returning returning) {
  const bool is_held = end_ps == Waits::no_instant;
  if (is_held && (comes_back_done || returning == Returning::when_safe)) return call.wait_for(in);
  if (comes_back_done) {
    call.wait_until(end_ps);
  } else if (returning == Returning::when_safe) {
    state.unstreamed_ps = later(state.unstreamed_ps, end_ps);
  }
  call.finish_untimed();
  return Result::done;
}

// A word that a stream writes or waits for.
std::uint64_t word_ps(const Settings& settings, bool of_batch) {
  return of_batch ? settings.word.in_batch_ps : settings.word.ps;
}

}  // namespace

bool Streams::put(const Call& call, Stream& stream, const Work& work, const Taking& taking, std::uint64_t& end_ps) {
  if (!call.timed()) return state_.pending.add(work);
  Held held{};
  held.step = Step::work;
  held.way = taking.way;
  held.device = taking.device;
  held.begin_ps = call.now() + taking.latency_ps;
  held.ps = taking.ps;
  held.bytes = taking.bytes;
  held.work = work;
  return state_.waits.put(stream, held, end_ps);
}

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
  const Way way = way_between(source, target);
  const int device = source.kind == Kind::device   ? source.device
                     : target.kind == Kind::device ? target.device
                                                   : in->device;
  // Level Zero's driver makes the host's memory known to the device for the time of a copy.
  const bool pageable = state_.settings.api != Api::level_zero && (is_pageable(target) || is_pageable(source));
  Work work{};
  work.to = to;
  work.from = from;
  work.rows = rows;
  if (way == Way::in && pageable && bytes <= staged_most) {
    work.staged = malloc(from_span);
    if (work.staged == nullptr) return Result::out_of_memory;
    memcpy(work.staged, from, from_span);
    work.from = work.staged;
    if (returning != Returning::at_once) {
      if (const Result result = call.wait_for(*in); result != Result::done) {
        free(work.staged);
        return result;
      }
      call.wait_until(state_.timeline.begin_of(*in));
    }
    call.wait_until(call.now() + time_ps(bytes, state_.settings.pageable_bytes_per_s));
  }
  const Settings& settings = state_.settings;
  const std::uint64_t peer = way == Way::peer ? peer_rate(settings, source.unit, target.unit) : 0;
  const Start start = way == Way::host ? Start{} : way == Way::local ? settings.local : settings.copy;
  // What was staged goes beside the other copies.
  const bool is_staged = work.staged != nullptr;
  const std::uint64_t left = is_staged && bytes > staged_piece ? staged_piece : bytes;
  const std::uint64_t takes_ps = start.step_ps + moving_ps(settings, way, left, pageable && !is_staged, peer);
  std::uint64_t end_ps = 0;
  if (!put(call, *in, work, {is_staged ? Way::host : way, device, start.latency_ps, takes_ps, bytes}, end_ps)) {
    free(work.staged);
    return Result::out_of_memory;
  }
  const bool must_wait = way == Way::host || (pageable && work.staged == nullptr);
  const bool synchronous = target.allocation.synchronous || source.allocation.synchronous;
  const bool is_safe = !synchronous && (way == Way::local || way == Way::peer || work.staged != nullptr);
  const bool comes_back_done =
      must_wait || returning == Returning::when_done || (returning == Returning::when_safe && !is_safe);
  return finish(call, state_, *in, end_ps, comes_back_done, returning);
}

Result Streams::fill(void* to, const Pattern& pattern, const Rows& rows, Stream* stream, Returning returning) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_);
  Stream* const in = state_.timeline.known(stream, current_device());
  if (in == nullptr) return Result::bad_handle;
  const std::uint64_t bytes = rows.width * rows.count;
  if (bytes == 0) return Result::done;
  const Place target = state_.memory.place_of(to);
  const std::uint64_t span = (rows.count - 1) * rows.to_pitch + rows.width;
  if (target.kind == Kind::host || !is_within(target, to, span)) return Result::bad_value;
  Work work{};
  work.to = to;
  work.rows = rows;
  work.pattern = pattern;
  std::uint64_t end_ps = 0;
  const Start& start = state_.settings.copy;
  const std::uint64_t takes_ps = start.step_ps + time_ps(bytes, state_.settings.memory_bytes_per_s);
  const bool is_put = put(call, *in, work, {Way::local, target.device, start.latency_ps, takes_ps}, end_ps);
  if (!is_put) return Result::out_of_memory;
  const bool must_wait =
      target.kind == Kind::pinned || target.kind == Kind::registered || target.allocation.synchronous;
  const bool comes_back_done = returning == Returning::when_done || (returning == Returning::when_safe && must_wait);
  return finish(call, state_, *in, end_ps, comes_back_done, returning);
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
  Work work{};
  work.to = argument;
  work.function = function;
  work.of_host = start == nullptr;
  const Start& takes = start != nullptr ? *start : state_.settings.local;
  std::uint64_t end_ps = 0;
  const bool is_put = put(call, *in, work, {Way::host, 0, takes.latency_ps, takes.step_ps}, end_ps);
  if (!is_put) return Result::out_of_memory;
  call.finish_untimed();
  return Result::done;
}

Result Streams::write(Stream* stream, void* to, std::uint64_t value, std::uint32_t bytes, bool of_batch) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_, of_batch ? 0 : state_.settings.short_call_ps);
  Stream* const in = state_.timeline.known(stream, current_device());
  if (in == nullptr) return Result::bad_handle;
  const Place place = state_.memory.place_of(to);
  if (place.kind == Kind::host || !is_within(place, to, bytes)) return Result::bad_value;
  state_.go_on_beside_program();
  Work work{};
  work.to = to;
  work.word = value;
  work.word_bytes = bytes;
  work.rows = {bytes, 1, bytes, bytes};
  std::uint64_t end_ps = 0;
  const bool is_put =
      put(call, *in, work, {Way::host, 0, state_.settings.copy.latency_ps, word_ps(state_.settings, of_batch)}, end_ps);
  if (!is_put) return Result::out_of_memory;
  call.finish_untimed();
  return Result::done;
}

Result Streams::wait(Stream* stream, const Condition& condition, bool of_batch) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_, of_batch ? 0 : state_.settings.short_call_ps);
  Stream* const in = state_.timeline.known(stream, current_device());
  if (in == nullptr) return Result::bad_handle;
  const void* const at = reinterpret_cast<const void*>(condition.address);
  const Place place = state_.memory.place_of(at);
  if (place.kind == Kind::host || !is_within(place, at, condition.bytes)) return Result::bad_value;
  if (!call.timed()) return Result::done;
  state_.go_on_beside_program();
  if (!state_.watch(condition.address, condition.bytes, call.now())) return Result::out_of_memory;
  Held held{};
  held.step = Step::wait;
  held.begin_ps = call.now() + state_.settings.copy.latency_ps;
  held.ps = word_ps(state_.settings, of_batch);
  held.condition = condition;
  std::uint64_t end_ps = 0;
  return state_.waits.put(*in, held, end_ps) ? Result::done : Result::out_of_memory;
}

Result Streams::is_blocking(Stream* stream, bool& blocking) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  const Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr) return Result::bad_handle;
  blocking = found->blocking;
  return Result::done;
}

bool Streams::is_of_current_device(Stream* stream) {
  pthread_mutex_lock(&state_.lock);
  const Stream* const found = state_.timeline.known(stream, current_device());
  const bool yes = found != nullptr && found->device == current_device();
  pthread_mutex_unlock(&state_.lock);
  return yes;
}

Result Streams::synchronize_device() {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_);
  const Result result = call.wait_for_device(current_device());
  if (result == Result::done) state_.pools.synchronised(call.now());
  return result;
}

Result Streams::wait(Stream* stream, Event* event) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr || !state_.timeline.is_known(event)) return Result::bad_handle;
  if (!event->recorded) return Result::done;
  Held held{};
  held.step = Step::follow;
  held.begin_ps = event->at_ps;
  held.awaited = event->ticket;
  std::uint64_t end_ps = 0;
  return state_.waits.put(*found, held, end_ps) ? Result::done : Result::out_of_memory;
}

// An event is work of its own: it comes to pass a latency after its call, or behind the work before it.
Result Streams::record(Event* event, Stream* stream) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_);
  Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr || !state_.timeline.is_known(event)) return Result::bad_handle;
  event->recorded = true;
  event->at_ps = 0;
  event->ticket = 0;
  if (!call.timed()) return Result::done;
  Held held{};
  held.step = Step::record;
  held.way = Way::host;
  held.begin_ps = call.now() + state_.settings.copy.latency_ps;
  held.event = event;
  std::uint64_t end_ps = 0;
  return state_.waits.put(*found, held, end_ps) ? Result::done : Result::out_of_memory;
}

Result Streams::elapsed(Event* begin, Event* end, float& ms) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  if (!state_.timeline.is_known(begin) || !state_.timeline.is_known(end) || !begin->recorded || !end->recorded ||
      !begin->timed || !end->timed) {
    return Result::bad_handle;
  }
  if (begin->ticket != 0 || end->ticket != 0 || begin->at_ps > call.now() || end->at_ps > call.now())
    return Result::not_ready;
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
  if (state_.waits.holds(*found)) return Result::not_ready;
  return state_.timeline.end_of(*found) <= call.now() ? Result::done : Result::not_ready;
}

Result Streams::query(Event* event) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, state_.settings.query_ps);
  if (!state_.timeline.is_known(event)) return Result::bad_handle;
  if (event->ticket != 0) return Result::not_ready;
  return !event->recorded || event->at_ps <= call.now() ? Result::done : Result::not_ready;
}

Result Streams::synchronize(Stream* stream, std::uint64_t within_ps) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_);
  const Stream* const found = state_.timeline.known(stream, current_device());
  if (found == nullptr) return Result::bad_handle;
  if (within_ps != forever) return wait_within(call, state_.timeline.end_of(*found), within_ps);
  const Result result = call.wait_for(*found);
  if (result == Result::done) state_.pools.synchronised(call.now());
  return result;
}

Result Streams::synchronize(Event* event, std::uint64_t within_ps) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  Call call(state_, state_.settings.query_ps);
  if (!state_.timeline.is_known(event)) return Result::bad_handle;
  if (within_ps != forever && event->recorded) return wait_within(call, event->at_ps, within_ps);
  const Result result = call.wait_for(*event);
  if (result == Result::done) state_.pools.synchronised(call.now());
  return result;
}

Result Streams::signal(Event* event, Stream* stream) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, 0);
  const Stream* const found = stream != nullptr ? state_.timeline.known(stream, current_device()) : nullptr;
  if (!state_.timeline.is_known(event) || (stream != nullptr && found == nullptr)) return Result::bad_handle;
  event->recorded = true;
  event->ticket = 0;
  event->at_ps = call.timed() && found != nullptr ? state_.timeline.end_of(*found) : 0;
  return Result::done;
}

Result Streams::reset(Event* event) {
  if (const Result result = state_.usable(); result != Result::done) return result;
  const Call call(state_, 0);
  if (!state_.timeline.is_known(event)) return Result::bad_handle;
  event->recorded = false;
  event->ticket = 0;
  return Result::done;
}

bool Streams::is_recorded(const Event* event) {
  pthread_mutex_lock(&state_.lock);
  const bool yes = state_.timeline.is_known(event) && event->recorded;
  pthread_mutex_unlock(&state_.lock);
  return yes;
}

}  // namespace dryfly::gpu
