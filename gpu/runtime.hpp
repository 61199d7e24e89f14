// A node's GPUs as one process has them: memory, and streams on which copies end at virtual instants.
//
// Models docs/model/gpu.md. A copy begins when its stream and the copy engine of its way are free, no sooner than a
// latency after its call, and takes the engine's own time and its bytes at the rate of the link. Its bytes move when
// that instant has come: each call of the runtime first does the work that is due, in the order of its ends. So a
// program that looks too early sees the old bytes. What waits for what is as a real runtime has it:
// programs/check/gpu_answers.txt. Left out: several processes on one link, and work whose instant comes while the
// program calls nothing of the runtime.
//
// Loaded into user programs: libc only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/memory.hpp"
#include "gpu/settings.hpp"

namespace dryfly::gpu {

enum class Way : std::uint8_t { in, out, peer, local, host };

struct Stream {
  std::uint64_t end_ps;  // of what was put into it last
  int device;
  bool blocking;  // waits for the default stream, and that for it
  bool taken;
  int next;  // while it is free, as Slots has it
};

struct Event {
  std::uint64_t at_ps;
  bool timed;
  bool recorded;
  bool taken;
  int next;  // while it is free, as Slots has it
};

// Which elements of an array are free: those that were given back, the last one first, and all behind the first `used`.
struct Slots {
  int used;
  int free;  // 1 and the index of the first; 0: none
};

enum class Result {
  done,
  not_ready,
  no_device,
  bad_value,
  bad_handle,
  out_of_memory,
  already,
  not_registered,
  not_permitted,  // of a function that a stream calls
  no_kernel,
  bad_shape,  // of a kernel's grid or block
  own_handle,
};

// When a copy or a fill comes back: as a call that only puts it into its stream; as one that has no stream of its own,
// which leaves what is within and between devices under way; or when it is over.
enum class Returning { at_once, when_safe, when_done };

// Rows of bytes, each so many bytes behind the one before it.
struct Rows {
  std::uint64_t width;
  std::uint64_t count;
  std::uint64_t to_pitch;
  std::uint64_t from_pitch;
};

class Runtime {
 public:
  static Runtime& get();

  const Settings& settings() const { return settings_; }
  int device() const;  // of the calling thread
  Result set_device(int device);

  Result allocate(Kind kind, std::uint64_t bytes, void*& pointer);
  Result release(void* pointer, bool of_host);
  Result register_host(void* start, std::uint64_t bytes);
  Result unregister_host(void* start);
  Place place_of(const void* pointer);
  // Bytes of the calling thread's device.
  void memory_info(std::size_t& unused, std::size_t& all);

  // Copies and fills of the device's memory that have no stream of their own are over when their calls come back from
  // now on, and what is under way comes to its end first. Result::bad_value: no device's memory.
  Result make_synchronous(const void* pointer, bool synchronous);
  // Of the driver of a NIC that is about to move bytes of it.
  void reached_by_nic(const void* pointer);
  // And of one that puts them into a command: a copy to the host, in no stream of the program's.
  void read_by_processor(const void* pointer, std::uint64_t bytes);

  // A device's memory for other processes of the node, and theirs here, as it comes from the faces' handles.
  Result show(const void* pointer, Handle& handle);
  Result open(const Handle& handle, void*& pointer);
  Result close(void* pointer);

  // `stream`: null for the default one. What is copied between host and host, or from a device to memory that no device
  // knows of, is over when the call comes back.
  Result copy(void* to, const void* from, std::uint64_t bytes, Stream* stream, Returning returning) {
    return copy(to, from, Rows{bytes, 1, bytes, bytes}, stream, returning);
  }
  Result copy(void* to, const void* from, const Rows& rows, Stream* stream, Returning returning);
  Result fill(void* to, int value, std::uint64_t bytes, Stream* stream, Returning returning);
  // Called when the work before it in the stream is over, by the thread that then calls the runtime. `start`: what it
  // takes; null: what a function of the host takes.
  Result call(Stream* stream, void (*function)(void*), void* argument, const Start* start = nullptr);

  Result create(Stream*& stream, bool blocking);
  Result destroy(Stream* stream);
  Result query(Stream* stream);
  Result is_blocking(Stream* stream, bool& blocking);
  Result synchronize(Stream* stream);
  Result synchronize_device();
  Result wait(Stream* stream, Event* event);

  Result create(Event*& event, bool timed);
  Result destroy(Event* event);
  Result record(Event* event, Stream* stream);
  Result query(Event* event);
  Result synchronize(Event* event);
  // Result::bad_handle where one was not recorded or has no time, not_ready where one is still to come.
  Result elapsed(Event* begin, Event* end, float& ms);

 private:
  struct Pending {
    void* to;
    const void* from;  // null: a fill
    Rows rows;         // of a fill the first alone
    std::uint64_t at_ps;
    int value;
    void* staged;  // what the bytes are in until then, to be given back; or null
    void (*function)(void*);
  };
  struct Engines {
    std::uint64_t in_ps;
    std::uint64_t out_ps;
    std::uint64_t peer_ps;
    std::uint64_t local_ps;
  };
  class Call;

  static constexpr int streams_max = 1024;
  static constexpr int events_max = 65536;

  Runtime();
  Stream* known(Stream* stream);
  bool is_known(const Event* event) const;
  std::uint64_t* engine(Way way, int device);
  Result usable() const;
  const Start& start_of(Way way) const { return way == Way::local ? settings_.local : settings_.copy; }
  // Of the engine, beside what each copy takes whatever its size.
  std::uint64_t moving_ps(Way way, std::uint64_t bytes, bool pageable, int links) const;
  // When the work in a stream is over, and before when no new work in it begins.
  std::uint64_t end_of(const Stream& stream) const;
  std::uint64_t begin_of(const Stream& stream) const;
  // Puts work of that length into the stream, which begins no sooner than at that instant; returns its end.
  std::uint64_t put(Stream& stream, std::uint64_t* engine, std::uint64_t begin_ps, std::uint64_t ps);
  std::uint64_t end_of_all() const;
  Result enqueue(const Pending& work);
  void settle(std::uint64_t now_ps);

  Settings settings_;
  Memory memory_;
  pthread_mutex_t lock_;
  Engines engines_[devices_max];
  std::uint64_t ends_ps_[devices_max];  // of all that a device was given, by streams that are gone too
  Stream default_[devices_max];
  Stream streams_[streams_max];
  Slots stream_slots_;
  Event* events_;  // of all there may be, untouched pages take no memory
  Slots event_slots_;
  Pending* pending_;  // by their ends
  std::size_t pending_count_;
  std::size_t pending_room_;
};

}  // namespace dryfly::gpu
