// What a simulated GPU runtime needs of the rank's clock (gpu/device_clock.hpp). Its calls are like calls of MPI: what
// this computer's processor does in them is not the program's computing. Their virtual time is, and is counted
// besides (RankTimes::gpu_ps); what MPI makes of them is its own.
#include "preload/clock/compute.hpp"
#include "preload/export.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {
enum Entered { no_virtual_time = -2, of_another_thread = -1, within_mpi = 0, from_gap = 1 };
std::uint64_t entered_ps;  // of the main thread's outermost call
}  // namespace

DRYFLY_EXPORT int dryfly_device_enter() {
  if (phase() != Phase::running) return no_virtual_time;
  if (!on_main_thread()) return of_another_thread;
  if (!leave_gap()) return within_mpi;
  entered_ps = instant();
  return from_gap;
}

DRYFLY_EXPORT void dryfly_device_leave(int entered) {
  if (entered != from_gap) return;
  wire::RankTimes& times = dryfly_self.page->times;
  times.gpu_ps += instant() - entered_ps;
  ++times.gpu_calls;
  begin_gap();
}

DRYFLY_EXPORT std::uint64_t dryfly_device_now() { return instant(); }

DRYFLY_EXPORT void dryfly_device_wait(std::uint64_t until_ps) { advance_to(until_ps); }

DRYFLY_EXPORT void dryfly_device_streams(std::uint64_t (*next_ps)(), bool (*wait)(), void (*act)(std::uint64_t),
                                         void (*written)(std::uint64_t, std::uint64_t, std::uint32_t, std::uint64_t)) {
  static rank::DeviceStreams streams;
  streams = {next_ps, wait, act, written};
  dryfly_self.streams.store(&streams, std::memory_order_release);
  dryfly_self.serves.store(1, std::memory_order_relaxed);
}

DRYFLY_EXPORT int dryfly_device_serve() {
  return dryfly_self.serving.next != nullptr && dryfly_self.serving.next() ? 1 : 0;
}

DRYFLY_EXPORT void dryfly_device_wrote(std::uint64_t address, std::uint64_t at_ps) {
  if (dryfly_self.serving.wrote != nullptr) dryfly_self.serving.wrote(address, at_ps);
}

DRYFLY_EXPORT int dryfly_device_watch(std::uint64_t address, std::uint32_t bytes) {
  return dryfly_self.serving.watch == nullptr || dryfly_self.serving.watch(address, bytes) ? 1 : 0;
}

}  // namespace dryfly::preload
