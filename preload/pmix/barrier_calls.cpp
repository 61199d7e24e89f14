// Barriers of the process manager in the middle of a run, which ranks take in virtual time instead (meeting.hpp).
//
// MPICH's ranks meet in PMI-1's when the first communicator of a session is made. It is a line to the launcher and one
// back, which is given here when everybody has come. Each rank's puts are with the launcher before it comes.
//
// Open MPI's ranks meet in fences of PMIx when MPI_COMM_WORLD is opened or closed and sessions are open. Meanwhile they
// would poll for messages, as often as the answer takes in wall time. A fence that collects what the ranks have put
// brings nothing that the file of the run and the server lack (modex_calls.cpp).
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "preload/export.hpp"
#include "preload/mpi/mpi_calls.hpp"
#include "preload/pmix/meeting.hpp"
#include "preload/pmix/modex_calls.hpp"
#include "preload/pmix/pmix_abi.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

constexpr char asked[] = "cmd=barrier_in\n";
constexpr char answer[] = "cmd=barrier_out rc=0\n";
constexpr char collect_key[] = "pmix.collect";
// All ranks come to all of either, in order.
constexpr std::uint64_t meeting_of_barriers = 0;
constexpr std::uint64_t meeting_of_fences = 1;

bool has_met = false;  // and has not read the answer

bool is_to_launcher(int descriptor) {
  static const int launcher = [] {
    const char* const text = getenv("PMI_FD");
    return text != nullptr ? atoi(text) : -1;
  }();
  return descriptor == launcher && Nesting::inside();
}

bool is_in_virtual_time() {
  return dryfly_self.attached.load(std::memory_order_relaxed) != 0 && phase() == Phase::running &&
         dryfly_self.call_mode.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(rank::CallMode::outside);
}

using FenceDone = void (*)(pmix::Status, void*);

bool is_everybody(const pmix::Process* members, std::size_t count) {
  return members == nullptr || count == 0 ||
         (count == 1 && members->rank == pmix::rank_wildcard && in_own_name_space(*members));
}

// No wish but whether to collect: MPI_Init has one of each.
bool is_barrier(const pmix::Info* wishes, std::size_t count) {
  return std::all_of(wishes, wishes + count,
                     [](const pmix::Info& wish) { return strncmp(wish.key, collect_key, sizeof wish.key) == 0; });
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;
namespace pmix = dryfly::pmix;

DRYFLY_EXPORT ssize_t write(int descriptor, const void* bytes, std::size_t count) {
  if (is_to_launcher(descriptor) && count == sizeof asked - 1 && memcmp(bytes, asked, count) == 0 &&
      is_in_virtual_time()) [[unlikely]] {
    meet(meeting_of_barriers, dryfly_self.header->rank_count);
    has_met = true;
    return static_cast<ssize_t>(count);
  }
  return real::write()(descriptor, bytes, count);  // where a thread may be cancelled, which a system call is not
}

DRYFLY_EXPORT ssize_t read(int descriptor, void* bytes, std::size_t count) {
  if (is_to_launcher(descriptor) && has_met && count >= sizeof answer - 1) [[unlikely]] {
    has_met = false;
    memcpy(bytes, answer, sizeof answer - 1);
    return sizeof answer - 1;
  }
  return real::read()(descriptor, bytes, count);
}

DRYFLY_EXPORT int PMIx_Fence_nb(const pmix::Process* members, std::size_t count, const pmix::Info* wishes,
                                std::size_t wish_count, FenceDone done, void* given) {
  using Fence = int (*)(const pmix::Process*, std::size_t, const pmix::Info*, std::size_t, FenceDone, void*);
  static const auto real = reinterpret_cast<Fence>(next_pmix_function("PMIx_Fence_nb"));
  const bool meets =
      Nesting::inside() && is_in_virtual_time() && is_everybody(members, count) && is_barrier(wishes, wish_count);
  if (!meets || done == nullptr) return real(members, count, wishes, wish_count, done, given);
  meet(meeting_of_fences, dryfly_self.header->rank_count);
  done(pmix::success, given);
  return pmix::success;
}
