#include "gpu/timeline.hpp"

#include <stdlib.h>
#include <sys/mman.h>

#include "gpu/times.hpp"

namespace dryfly::gpu {

namespace {

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

void Timeline::open(int devices) {
  devices_ = devices;
  void* const room = mmap(nullptr, sizeof(Event) * events_max, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) abort();
  events_ = static_cast<Event*>(room);
  for (int i = 0; i < devices; ++i) {
    default_[i] = {
        .end_ps = 0, .device = i, .blocking = true, .taken = true, .next = 0, .first = nullptr, .last = nullptr};
  }
}

void Timeline::share_links(const Settings& settings) {
  for (int i = 0; i < devices_; ++i) {
    gpu_of_[i] = settings.physical[i] / settings.tiles;
    for (std::uint64_t& each : links_[gpu_of_[i]].bytes_per_s) each = settings.gpu_bytes_per_s;
  }
  node_.bytes_per_s[0] = settings.node.out_bytes_per_s;
  node_.bytes_per_s[1] = settings.node.in_bytes_per_s;
}

Stream* Timeline::create_stream(int device, bool blocking) {
  Stream* const found = take(streams_, streams_max, stream_slots_);
  if (found != nullptr) {
    *found = {.end_ps = 0,
              .device = device,
              .blocking = blocking,
              .taken = true,
              .next = 0,
              .first = nullptr,
              .last = nullptr};
  }
  return found;
}

Event* Timeline::create_event(bool timed) {
  Event* const found = take(events_, events_max, event_slots_);
  if (found != nullptr) *found = {.at_ps = 0, .timed = timed, .recorded = false, .taken = true, .next = 0, .ticket = 0};
  return found;
}

void Timeline::destroy(Stream& stream) {
  stream.taken = false;
  drained(stream);
}
void Timeline::drained(Stream& stream) {
  if (!stream.taken && stream.first == nullptr) give_back(streams_, stream, stream_slots_);
}
void Timeline::destroy(Event& event) { give_back(events_, event, event_slots_); }

Stream* Timeline::known(Stream* stream, int device) {
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return &default_[device];
  const bool inside = stream >= streams_ && stream < streams_ + streams_max;
  return inside && stream->taken ? stream : nullptr;
}

bool Timeline::is_known(const Event* event) const {
  return event >= events_ && event < events_ + event_slots_.used && event->taken;
}

std::uint64_t* Timeline::engine(Way way, int device) {
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

// The default stream is done when the blocking streams of its device are, too; those have an end of their own.
std::uint64_t Timeline::end_of(const Stream& stream) const {
  std::uint64_t at_ps = stream.end_ps;
  if (&stream != &default_[stream.device]) return at_ps;
  for (int i = 0; i < stream_slots_.used; ++i) {
    const Stream& other = streams_[i];
    if ((other.taken || other.first != nullptr) && other.blocking && other.device == stream.device)
      at_ps = later(at_ps, other.end_ps);
  }
  return at_ps;
}

std::uint64_t Timeline::begin_of(const Stream& stream) const {
  const std::uint64_t at_ps = end_of(stream);
  return stream.blocking ? later(at_ps, default_[stream.device].end_ps) : at_ps;
}

std::uint64_t Timeline::carry(Link& link, bool in, std::uint64_t begin_ps, std::uint64_t bytes) {
  const std::uint64_t rate = link.bytes_per_s[in ? 1 : 0];
  if (rate == 0) return 0;
  std::uint64_t& busy_ps = link.busy_ps[in ? 1 : 0];
  busy_ps = later(busy_ps, begin_ps) + time_ps(bytes, rate);
  return busy_ps;
}

std::uint64_t Timeline::put(Stream& stream, Way way, int device, std::uint64_t begin_ps, std::uint64_t ps,
                            std::uint64_t bytes) {
  std::uint64_t* const by = engine(way, device);
  begin_ps = later(begin_ps, begin_of(stream));
  if (by != nullptr) begin_ps = later(begin_ps, *by);
  stream.end_ps = begin_ps + ps;
  if (bytes != 0 && (way == Way::in || way == Way::out)) {
    stream.end_ps = later(stream.end_ps, carry(links_[gpu_of_[device]], way == Way::in, begin_ps, bytes));
    stream.end_ps = later(stream.end_ps, carry(node_, way == Way::in, begin_ps, bytes));
  }
  if (by != nullptr) *by = stream.end_ps;
  ends_ps_[stream.device] = later(ends_ps_[stream.device], stream.end_ps);
  return stream.end_ps;
}

std::uint64_t Timeline::end_of_all() const {
  std::uint64_t at_ps = 0;
  for (int i = 0; i < devices_; ++i) at_ps = later(at_ps, ends_ps_[i]);
  return at_ps;
}

}  // namespace dryfly::gpu
