// What happens to buffers on GPUs around a call of MPI. What the program has copied without a stream of its own is
// there when the call begins. And Open MPI reduces on the processor: a build of its own for GPUs has a component
// (coll/accelerator) that copies the buffers of a reduction to the host and its result back, for which the calls here
// stand in, since the wheels lack it. Models docs/model/gpu.md#reductions.
#pragma once

#include <cstddef>

#include "preload/mpi/mpi_calls.hpp"

namespace dryfly::preload {

// Of calls whose buffers Open MPI's component copies: those that reduce and come back with the result.
constexpr bool reduces_on_the_host(Call call) {
  switch (call) {
    case Call::Allreduce:
    case Call::Allreduce_c:
    case Call::Exscan:
    case Call::Exscan_c:
    case Call::Reduce:
    case Call::Reduce_c:
    case Call::Reduce_local:
    case Call::Reduce_local_c:
    case Call::Reduce_scatter:
    case Call::Reduce_scatter_c:
    case Call::Reduce_scatter_block:
    case Call::Reduce_scatter_block_c:
    case Call::Scan:
    case Call::Scan_c:
      return true;
    default:
      return false;
  }
}

void settle_gpu_copies();

// Why the MPI library of this rank takes no memory of GPUs, as `dryfly run` has found it; null where it does, or where
// there is none.
const char* why_no_gpu_buffers();
// Once a process, where such a library is given some: the call and what the machine would make of it.
void tell_of_gpu_buffers(const char* call, const char* why, const long* words, std::size_t count);

// The arguments of one such call while their buffers are on the host.
class HostBuffers {
 public:
  HostBuffers() = default;
  HostBuffers(const HostBuffers&) = delete;
  HostBuffers& operator=(const HostBuffers&) = delete;

  // The arguments to call with: those given, where no buffer is a GPU's.
  const long* take(Call call, const long* words, std::size_t count);
  void give_back();

 private:
  struct Buffer {
    void* device = nullptr;
    char* host = nullptr;
    std::size_t bytes = 0;
  };
  static constexpr std::size_t words_most = 7;  // of MPI_Reduce

  bool move(Buffer& buffer, long& word, std::size_t bytes, std::ptrdiff_t gap);

  Buffer sent_;
  Buffer received_;
  long words_[words_most];
};

}  // namespace dryfly::preload
