// What the faces of CUDA and HIP make of calls that are alike in both, but for the codes that they answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gpu/runtime.hpp"
#include "gpu/streams.hpp"

namespace dryfly::gpu {

// Of rows that are filled by kernels, each begins at a multiple of this.
constexpr std::size_t pitch_step = 512;

inline Result allocate_rows(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  if (pointer == nullptr || pitch == nullptr) return Result::bad_value;
  *pitch = height == 0 ? 0 : (width + pitch_step - 1) / pitch_step * pitch_step;
  return Runtime::get().allocate(Kind::device, *pitch * height, *pointer);
}

inline Result fill_rows(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height, Stream* stream,
                        Returning returning) {
  if (width > pitch) return Result::bad_value;
  const Pattern pattern{{static_cast<unsigned char>(value)}, 1};
  return Streams::get().fill(to, pattern, Rows{width, height, pitch, pitch}, stream, returning);
}

// Managed memory is on the host and on each device at once: hints do nothing, and fail where a real one's would.
inline bool is_managed(const void* pointer) { return Runtime::get().place_of(pointer).kind == Kind::managed; }

using Callback = void (*)(Stream* stream, int status, void* argument);

inline Result add_callback(Stream* stream, Callback callback, void* argument) {
  struct Called {
    Stream* stream;
    Callback callback;
    void* argument;
  };
  if (callback == nullptr) return Result::bad_value;
  auto* const called = static_cast<Called*>(malloc(sizeof(Called)));
  if (called == nullptr) return Result::out_of_memory;
  *called = {stream, callback, argument};
  const auto run = [](void* given) {
    const Called one = *static_cast<Called*>(given);
    free(given);
    one.callback(one.stream, 0, one.argument);
  };
  const Result result = Streams::get().call(stream, run, called);
  if (result != Result::done) free(called);
  return result;
}

// Limits of a device that a program may set; nothing here is short of them.
class Limits {
 public:
  bool read(int number, std::size_t& value) const {
    if (number < 0 || number >= count) return false;
    value = values_[number];
    return true;
  }
  bool write(int number, std::size_t value) {
    if (number < 0 || number >= count) return false;
    values_[number] = value;
    return true;
  }

 private:
  static constexpr int count = 7;
  // Stack of a thread, buffer of printf, heap, depth of waits, launches under way, and two of the second-level cache.
  std::size_t values_[count] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0};
};

// Blocks of so many threads that a multiprocessor has room for, by its threads alone.
inline int resident_blocks(int threads, int threads_most, int blocks_most) {
  if (threads <= 0) return 0;
  const int blocks = threads_most / threads;
  return blocks < blocks_most ? blocks : blocks_most;
}

}  // namespace dryfly::gpu
