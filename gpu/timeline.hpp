// Streams, events and copy engines of the devices, in virtual time: when work that is put into a stream begins and
// ends. What waits for what: docs/model/gpu.md#streams. Not safe to call by several threads; the runtime has one lock.
#pragma once

#include <cstdint>

#include "gpu/settings.hpp"

namespace dryfly::gpu {

enum class Way : std::uint8_t { in, out, peer, local, host };

struct Held;

struct Stream {
  std::uint64_t end_ps;  // of what was put into it last
  int device;
  bool blocking;  // waits for the default stream, and that for it
  bool taken;
  int next;     // while it is free, as Slots has it
  Held* first;  // of what waits for memory, or behind that (gpu/held.hpp), after all else; null: nothing does
  Held* last;
};

struct Event {
  std::uint64_t at_ps;
  bool timed;
  bool recorded;
  bool taken;
  int next;              // while it is free, as Slots has it
  std::uint64_t ticket;  // of its record, while that is held; 0: it is not
};

// Which elements of an array are free: those that were given back, the last one first, and all behind the first `used`.
struct Slots {
  int used;
  int free;  // 1 and the index of the first; 0: none
};

class Timeline {
 public:
  // Ends the process where this computer lacks the address space.
  void open(int devices);
  // Copies to and from the host take their bytes of links that devices share, too.
  void share_links(const Settings& settings);

  // Null: all are taken.
  Stream* create_stream(int device, bool blocking);
  Event* create_event(bool timed);
  void destroy(Stream& stream);
  void destroy(Event& event);
  // Null: it is none. Null, 1 and 2 are the runtime's names of the default stream: that of the device, twice, and that
  // of the thread.
  Stream* known(Stream* stream, int device);
  bool is_known(const Event* event) const;
  Stream& standard(int device) { return default_[device]; }
  // The default ones, and those that were created.
  template <class Visit>
  void each(Visit visit) {
    for (int i = 0; i < devices_; ++i) visit(default_[i]);
    for (int i = 0; i < stream_slots_.used; ++i) visit(streams_[i]);
  }
  // Nothing of it is held any more: it may be given back if it was destroyed.
  void drained(Stream& stream);

  // When the work in a stream is over, and before when no new work in it begins.
  std::uint64_t end_of(const Stream& stream) const;
  std::uint64_t begin_of(const Stream& stream) const;
  // Of all that a device was given, by streams that are gone too, and of all devices.
  std::uint64_t end_of_device(int device) const { return ends_ps_[device]; }
  std::uint64_t end_of_all() const;

  // Puts work of that length into the stream, which begins no sooner than at that instant; returns its end. Its way is
  // that of a copy by an engine of the device; Way::host: it needs none. `bytes`: of a copy to or from the host.
  std::uint64_t put(Stream& stream, Way way, int device, std::uint64_t begin_ps, std::uint64_t ps,
                    std::uint64_t bytes = 0);

 private:
  struct Engines {
    std::uint64_t in_ps;
    std::uint64_t out_ps;
    std::uint64_t peer_ps;
    std::uint64_t local_ps;
  };
  // A link as the work that it has been given, worked off without a pause, each way.
  struct Link {
    std::uint64_t bytes_per_s[2];  // 0: no less than all who use it
    std::uint64_t busy_ps[2];
  };
  static constexpr int streams_max = 1024;
  static constexpr int events_max = 65536;

  std::uint64_t* engine(Way way, int device);
  static std::uint64_t carry(Link& link, bool in, std::uint64_t begin_ps, std::uint64_t bytes);

  int devices_;
  int gpu_of_[devices_max];  // whose link it is
  Link links_[devices_max];
  Link node_;
  Engines engines_[devices_max];
  std::uint64_t ends_ps_[devices_max];
  Stream default_[devices_max];
  Stream streams_[streams_max];
  Slots stream_slots_;
  Event* events_;  // of all there may be, untouched pages take no memory
  Slots event_slots_;
};

}  // namespace dryfly::gpu
