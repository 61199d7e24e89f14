#include "preload/clock/progress_rest.hpp"

#include <atomic>
#include <cstdint>
#include <utility>

#include "preload/mpi/loaded_code.hpp"
#include "preload/rank.hpp"
#include "wire/futex.hpp"

namespace dryfly::preload {

namespace {

LoadedCode open_pal;
LoadedCode open_mpi;

// The loop leaves by a jump to sched_yield, which then returns to whoever has called the loop.
bool is_open_mpi(const void* return_address) {
  return open_pal.has(return_address, "opal_progress") || open_mpi.has(return_address, "ompi_mpi_init");
}

std::atomic<std::uint32_t> news{0};
std::atomic<std::uint32_t> resting{0};  // threads

// The loop also looks for what is not the network's (PMIx), now and then.
constexpr long rest_ns = 10'000'000;

bool another_waits() { return dryfly_self.threads.one_waits.load(std::memory_order_seq_cst) != 0; }

// Since its last turn that found nothing this thread has taken a completion, or copied: what others rest for may be
// complete by that, but not before it has come round again.
__attribute__((tls_model("initial-exec"))) thread_local constinit bool has_got_on = false;

// Up to the thread's last look what it waits for had not come. What is news since then it has still to look for.
__attribute__((tls_model("initial-exec"))) thread_local constinit std::uint32_t news_looked_for = 0;

__attribute__((tls_model("initial-exec"))) thread_local constinit bool is_probing = false;

void rest() {
  resting.fetch_add(1, std::memory_order_seq_cst);
  if (another_waits()) wire::futex_wait(news, news_looked_for, rest_ns);
  resting.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace

void note_probing(bool probes) { is_probing = probes; }

void note_getting_on() { has_got_on = true; }

void end_rests() {
  if (!dryfly_self.has_threads()) return;
  news.fetch_add(1, std::memory_order_seq_cst);
  if (resting.load(std::memory_order_seq_cst) != 0) wire::futex_wake(news);
}

bool rests_in_progress(const void* return_address) {
  if (dryfly_self.attached.load(std::memory_order_relaxed) == 0 || phase() != Phase::running ||
      !is_open_mpi(return_address)) {
    return false;
  }
  if (!dryfly_self.has_threads()) return true;
  if (is_probing) return false;
  if (std::exchange(has_got_on, false)) end_rests();
  if (news_looked_for == news.load(std::memory_order_seq_cst) && another_waits()) rest();
  news_looked_for = news.load(std::memory_order_seq_cst);
  return true;
}

}  // namespace dryfly::preload
