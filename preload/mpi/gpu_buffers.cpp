#include "preload/mpi/gpu_buffers.hpp"

#include <stdio.h>
#include <stdlib.h>

#include "preload/clock/compute_file.hpp"
#include "preload/mpi/expected_mpi.hpp"
#include "preload/mpi/mpi_library.hpp"

// The GPU runtime's (gpu/nic.cpp); absent where ranks have no simulated GPUs.
extern "C" {
__attribute__((weak)) void dryfly_gpu_before_mpi();
__attribute__((weak)) int dryfly_gpu_of(const void* buffer);
__attribute__((weak)) int dryfly_gpu_copy(void* to, const void* from, std::size_t bytes);
}

namespace dryfly::preload {

namespace {

constexpr long in_place = 1;  // Open MPI's MPI_IN_PLACE

bool is_wide(Call call) {
  switch (call) {
    case Call::Allreduce_c:
    case Call::Exscan_c:
    case Call::Reduce_c:
    case Call::Reduce_local_c:
    case Call::Reduce_scatter_c:
    case Call::Reduce_scatter_block_c:
    case Call::Scan_c:
      return true;
    default:
      return false;
  }
}

int of_communicator(const char* function, long communicator) {
  int value = 0;
  reinterpret_cast<int (*)(long, int*)>(find_pmpi(function))(communicator, &value);
  return value;
}

long count_at(Call call, const long* words, int place) {
  return is_wide(call) ? words[place] : static_cast<int>(words[place]);
}

struct Counts {
  long sent;
  long received;  // 0: this rank gets nothing
};

Counts counts_of(Call call, const long* words) {
  constexpr int root = 5;
  switch (call) {
    case Call::Reduce:
    case Call::Reduce_c: {
      const long count = count_at(call, words, 2);
      return {count, of_communicator("Comm_rank", words[6]) == static_cast<int>(words[root]) ? count : 0};
    }
    case Call::Reduce_scatter_block:
    case Call::Reduce_scatter_block_c: {
      const long count = count_at(call, words, 2);
      return {count * of_communicator("Comm_size", words[5]), count};
    }
    case Call::Reduce_scatter:
    case Call::Reduce_scatter_c: {
      const int size = of_communicator("Comm_size", words[5]), rank = of_communicator("Comm_rank", words[5]);
      Counts counts{0, 0};
      for (int i = 0; i < size; ++i) {
        const long count =
            is_wide(call) ? reinterpret_cast<const long*>(words[2])[i] : reinterpret_cast<const int*>(words[2])[i];
        counts.sent += count;
        if (i == rank) counts.received = count;
      }
      return counts;
    }
    default:
      return {count_at(call, words, 2), count_at(call, words, 2)};
  }
}

struct Extent {
  long lower, extent, true_lower, true_extent;
  std::size_t span(long count) const {
    return count > 0 ? static_cast<std::size_t>(true_extent + (count - 1) * extent) : 0;
  }
};

Extent extent_of(long datatype) {
  using Ask = int (*)(long, long*, long*);
  Extent found{};
  reinterpret_cast<Ask>(find_pmpi("Type_get_extent"))(datatype, &found.lower, &found.extent);
  reinterpret_cast<Ask>(find_pmpi("Type_get_true_extent"))(datatype, &found.true_lower, &found.true_extent);
  return found;
}

}  // namespace

void settle_gpu_copies() {
  if (dryfly_gpu_before_mpi != nullptr) dryfly_gpu_before_mpi();
}

const char* why_no_gpu_buffers() {
  static const char* const why = dryfly_gpu_of != nullptr ? getenv("DRYFLY_GPU_UNAWARE") : nullptr;
  return why;
}

// Any word may be a buffer: nothing else that MPI is given lies in the addresses of a device.
void tell_of_gpu_buffers(const char* call, const char* why, const long* words, std::size_t count) {
  static bool told = false;
  for (std::size_t i = 0; i < count && !told; ++i) {
    const int gpu = dryfly_gpu_of(reinterpret_cast<const void*>(words[i]));
    if (gpu < 0) continue;
    told = true;
    fprintf(stderr,
            "dryfly: rank %s gave MPI_%s memory of GPU %d, and %s: what it does is right here, and on the machine the "
            "job hangs or ends with a segmentation fault (which MPI knows of GPUs: docs/guide/gpu.md)\n",
            rank_name(), call, gpu, why);
  }
}

bool HostBuffers::move(Buffer& buffer, long& word, std::size_t bytes, std::ptrdiff_t gap) {
  auto* const given = reinterpret_cast<char*>(word);
  if (bytes == 0 || word == in_place || dryfly_gpu_of(given) < 0) return false;
  buffer = {.device = given + gap, .host = static_cast<char*>(malloc(bytes)), .bytes = bytes};
  if (buffer.host == nullptr) return false;
  dryfly_gpu_copy(buffer.host, buffer.device, bytes);
  word = reinterpret_cast<long>(buffer.host - gap);
  return true;
}

const long* HostBuffers::take(Call call, const long* words, std::size_t count) {
  if (dryfly_gpu_of == nullptr || dryfly_gpu_copy == nullptr || abi() != Abi::open_mpi) return words;
  const bool sent = words[0] != in_place && dryfly_gpu_of(reinterpret_cast<const void*>(words[0])) >= 0;
  if (!sent && dryfly_gpu_of(reinterpret_cast<const void*>(words[1])) < 0) return words;
  for (std::size_t i = 0; i < count && i < words_most; ++i) words_[i] = words[i];
  const Counts counts = counts_of(call, words);
  const Extent extent = extent_of(words[3]);
  // In place the received buffer is what is reduced, and of a reduction with parts all of it.
  const long received = words[0] == in_place && counts.received != 0 ? counts.sent : counts.received;
  bool moved = move(sent_, words_[0], extent.span(counts.sent), extent.true_lower);
  moved |= move(received_, words_[1], extent.span(received), extent.true_lower);
  return moved ? words_ : words;
}

void HostBuffers::give_back() {
  if (received_.host != nullptr) dryfly_gpu_copy(received_.device, received_.host, received_.bytes);
  free(sent_.host);
  free(received_.host);
}

}  // namespace dryfly::preload
