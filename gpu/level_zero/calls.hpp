// libze_loader.so.1: Level Zero's calls that MPI libraries and their users make, over gpu/runtime.hpp. A tile is a
// device of the runtime; a GPU of several, where the program asks for such (ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE), is a
// name for its tiles, whose memory is taken from the first that has room.
//
// A command queue and an immediate command list are streams: their commands run in order, whatever flags say. A command
// list keeps its commands until it is executed. Kernels are functions of the program, by an extension of dryfly's own
// (include/dryfly/level_zero.h). What is not simulated answers ZE_RESULT_ERROR_UNSUPPORTED_FEATURE. Left out: modules,
// images, timestamps of events, and waiting for an event that nothing signals before.
//
// Here is what the calls have in common: how they are exported, find the runtime, and answer.
#pragma once

#include <string.h>

#include <cstdint>

#include "gpu/level_zero/types.hpp"
#include "gpu/runtime.hpp"
#include "gpu/streams.hpp"

#define ZE_EXPORT extern "C" __attribute__((visibility("default")))

namespace dryfly::gpu::level_zero {

inline Runtime& runtime() { return Runtime::get(); }
inline Streams& streams() { return Streams::get(); }
inline const Settings& settings() { return runtime().settings(); }

inline int code_of(Result result) {
  switch (result) {
    case Result::done:
      return success;
    case Result::not_ready:
      return not_ready;
    case Result::no_device:
      return uninitialized;
    case Result::bad_handle:
      return invalid_null_handle;
    case Result::out_of_memory:
      return out_of_device_memory;
    case Result::not_permitted:
    case Result::no_kernel:
    case Result::bad_shape:
      return unsupported_feature;
    case Result::bad_value:
    case Result::already:
    case Result::not_registered:
    case Result::own_handle:
      return invalid_argument;
  }
  return invalid_argument;
}

// What lists are filled by: `count` says how many there is room for, and then how many there are.
template <class Each, class Fill>
int list_out(std::uint32_t* count, Each* to, std::uint32_t have, Fill fill) {
  if (count == nullptr) return invalid_null_pointer;
  if (*count == 0 || *count > have) *count = have;
  if (to == nullptr) return success;
  for (std::uint32_t i = 0; i < *count; ++i) fill(to[i], i);
  return success;
}

// Clears what it fills, and leaves the head that says what it is.
template <class Properties>
void clear(Properties& properties) {
  memset(reinterpret_cast<char*>(&properties) + sizeof(Base), 0, sizeof properties - sizeof(Base));
}

inline std::uint64_t ps_of(std::uint64_t ns) {
  constexpr std::uint64_t ps_per_ns = 1000;
  return ns > Streams::forever / ps_per_ns ? Streams::forever : ns * ps_per_ns;
}

// The thread's device for the time of a call.
class On {
 public:
  explicit On(int device) : before_(runtime().device()) { runtime().set_device(device); }
  ~On() { runtime().set_device(before_); }
  On(const On&) = delete;
  On& operator=(const On&) = delete;

 private:
  const int before_;
};

}  // namespace dryfly::gpu::level_zero
