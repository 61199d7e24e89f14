// All that a process has of its node's GPUs, and a call of the runtime, which has it alone. Of these calls Runtime has
// those about devices and memory, and Streams those about work.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "gpu/held.hpp"
#include "gpu/memory.hpp"
#include "gpu/pending.hpp"
#include "gpu/pools.hpp"
#include "gpu/settings.hpp"
#include "gpu/timeline.hpp"
#include "gpu/times.hpp"

namespace dryfly::gpu {

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

struct State {
  // Made at the first call, so that a program may still set its mask; never destroyed, for programs free memory in
  // destructors of their own.
  static State& get();

  // Result::done: there are devices, and this is no function that a stream calls.
  Result usable() const;
  // Does what is due, one piece of work at a time: a function that is called may call MPI, and that looks at pointers.
  // The lock is held before and after.
  void settle(std::uint64_t now_ps) { settle(now_ps, true); }
  // `calls`: functions of the program, too; else what is behind them waits with them.
  void settle(std::uint64_t now_ps, bool calls);
  // Streams wait for memory, or write to what NICs see: they go on beside the program from now on.
  void go_on_beside_program();
  // What is due outside virtual time: all, or where streams go on beside the program what takes no time, for it may be
  // another thread that calls.
  std::uint64_t untimed_until_ps() const { return beside_program_ ? 0 : ~std::uint64_t{0}; }
  // A word that a stream waits for is known, or will be.
  bool watch(std::uint64_t address, std::uint32_t bytes, std::uint64_t now_ps);

  Settings settings;
  Memory memory;
  Timeline timeline;
  Pending pending;
  Waits waits;
  Pools pools;
  std::uint64_t unstreamed_ps;  // when what was put into the default stream by calls without a stream is over
  pthread_mutex_t lock;

 private:
  State();

  bool beside_program_;
};

int& current_device();  // of the calling thread

// What a runtime keeps of one copy from pageable memory before its call comes back: so much it was seen to keep.
inline constexpr std::uint64_t staged_most = 1 << 20;

// Of an engine, or a core, for the bytes of a copy. `pageable`: to or from memory that no device knows of.
// `peer_bytes_per_s`: of a copy between two devices.
std::uint64_t moving_ps(const Settings& settings, Way way, std::uint64_t bytes, bool pageable,
                        std::uint64_t peer_bytes_per_s);

// One call of the runtime: alone in it, with the work done that is due. Outside virtual time nothing takes time, and
// all work is due.
class Call {
 public:
  explicit Call(State& state) : Call(state, state.settings.call_ps) {}
  Call(State& state, std::uint64_t cost_ps);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool timed() const { return entered_ >= 0; }
  std::uint64_t now() const;
  void wait_until(std::uint64_t at_ps);
  // Until the stream's work is over, what waits for memory too; until all of the device's is. Result::not_permitted:
  // nobody can say when that is.
  Result wait_for(const Stream& stream);
  Result wait_for_device(int device);
  Result wait_for_all();
  // Until it has come to pass.
  Result wait_for(const Event& event);
  // Outside virtual time: what has just been put into a stream is over.
  void finish_untimed();

 private:
  template <class IsHeld>
  Result wait_while(IsHeld is_held);

  State& state_;
  const int entered_;
};

}  // namespace dryfly::gpu
