// Work on a node's GPUs as one process has it: copies, fills and functions in streams, which end at virtual instants.
//
// Models docs/model/gpu.md. A copy begins when its stream and the copy engine of its way are free, no sooner than a
// latency after its call, and takes the engine's own time and its bytes at the rate of the link. Its bytes move when
// that instant has come: each call of the runtime first does the work that is due, in the order of its ends. So a
// program that looks too early sees the old bytes. What waits for what is as a real runtime has it:
// programs/check/gpu_answers.txt. Once a stream waits for memory or writes to a word, all go on beside the program
// (gpu/held.hpp). Left out: several processes on one link, and until then work whose instant comes while the program
// calls nothing of the runtime.
//
// Loaded into user programs: libc only.
#pragma once

#include <cstdint>

#include "gpu/state.hpp"

namespace dryfly::gpu {

// When a copy or a fill comes back: as a call that only puts it into its stream; as one that has no stream of its own,
// which leaves what is within and between devices under way; or when it is over.
enum class Returning { at_once, when_safe, when_done };

class Streams {
 public:
  static constexpr std::uint64_t forever = ~std::uint64_t{0};

  static Streams& get();

  // `stream`: null for the default one. What is copied between host and host, or from a device to memory that no device
  // knows of, is over when the call comes back.
  Result copy(void* to, const void* from, std::uint64_t bytes, Stream* stream, Returning returning) {
    return copy(to, from, Rows{bytes, 1, bytes, bytes}, stream, returning);
  }
  Result copy(void* to, const void* from, const Rows& rows, Stream* stream, Returning returning);
  Result fill(void* to, int value, std::uint64_t bytes, Stream* stream, Returning returning) {
    return fill(to, Pattern{{static_cast<unsigned char>(value)}, 1}, Rows{bytes, 1, bytes, bytes}, stream, returning);
  }
  Result fill(void* to, const Pattern& pattern, const Rows& rows, Stream* stream, Returning returning);
  // Called when the work before it in the stream is over, by the thread that then calls the runtime. `start`: what it
  // takes; null: what a function of the host takes.
  Result call(Stream* stream, void (*function)(void*), void* argument, const Start* start = nullptr);

  // A word of memory that the runtime knows gets that value behind the work before it; the stream waits there until one
  // has a value. `of_batch`: the processor's call was for others before it, too, and is charged.
  Result write(Stream* stream, void* to, std::uint64_t value, std::uint32_t bytes, bool of_batch = false);
  Result wait(Stream* stream, const Condition& condition, bool of_batch = false);

  Result create(Stream*& stream, bool blocking);
  Result destroy(Stream* stream);
  Result query(Stream* stream);
  Result is_blocking(Stream* stream, bool& blocking);
  // False for what is no stream, too.
  bool is_of_current_device(Stream* stream);
  // Result::not_ready: it is not over when so much time has passed.
  Result synchronize(Stream* stream, std::uint64_t within_ps = forever);
  Result synchronize_device();
  Result wait(Stream* stream, Event* event);

  Result create(Event*& event, bool timed);
  Result destroy(Event* event);
  Result record(Event* event, Stream* stream);
  Result query(Event* event);
  Result synchronize(Event* event, std::uint64_t within_ps = forever);
  // As a part of other work: it comes to pass with what is in the stream, or at once where that is null.
  Result signal(Event* event, Stream* stream);
  // Not recorded from now on, at no cost.
  Result reset(Event* event);
  // False for what is no event, too.
  bool is_recorded(const Event* event);
  // Result::bad_handle where one was not recorded or has no time, not_ready where one is still to come.
  Result elapsed(Event* begin, Event* end, float& ms);

  // Waits for what came back early though it has no stream of its own.
  void before_mpi();

 private:
  explicit Streams(State& state) : state_(state) {}
  // What a piece of work takes: an engine, or none (Way::host), and how long from its call and then.
  struct Taking {
    Way way;
    int device;
    std::uint64_t latency_ps;
    std::uint64_t ps;
    std::uint64_t bytes = 0;  // that shared links carry
  };
  bool put(const Call& call, Stream& stream, const Work& work, const Taking& taking, std::uint64_t& end_ps);

  State& state_;
};

}  // namespace dryfly::gpu
