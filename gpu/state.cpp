#include "gpu/state.hpp"

#include <stdlib.h>
#include <sys/mman.h>

#include <new>

#include "gpu/device_clock.hpp"

namespace dryfly::gpu {

namespace {

constexpr std::uint64_t far_future = ~std::uint64_t{0};

thread_local int device_of_thread = 0;
thread_local bool in_function = false;

}  // namespace

State& State::get() {
  static State* state = nullptr;
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, [] {
    void* const room = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) abort();
    state = new (room) State;
  });
  return *state;
}

State::State() : settings(read_settings(getenv("DRYFLY_GPU"), masks_of_environment())) {
  pthread_mutex_init(&lock, nullptr);
  memory.open(settings);
  timeline.open(settings.devices);
}

Result State::usable() const {
  if (settings.devices == 0) return Result::no_device;
  return in_function ? Result::not_permitted : Result::done;
}

void State::settle(std::uint64_t now_ps) {
  Work work;
  while (pending.take_due(now_ps, work)) {
    if (work.function == nullptr) {
      move_bytes(work);
      continue;
    }
    pthread_mutex_unlock(&lock);
    in_function = true;
    work.function(work.to);
    in_function = false;
    pthread_mutex_lock(&lock);
  }
}

int& current_device() { return device_of_thread; }

std::uint64_t moving_ps(const Settings& settings, Way way, std::uint64_t bytes, bool pageable,
                        std::uint64_t peer_bytes_per_s) {
  switch (way) {
    case Way::in:
    case Way::out: {
      const std::uint64_t by_link_ps = time_ps(bytes, settings.link_bytes_per_s);
      return pageable ? later(by_link_ps, time_ps(bytes, settings.pageable_bytes_per_s)) : by_link_ps;
    }
    case Way::peer:
      return time_ps(bytes, peer_bytes_per_s);
    case Way::local:
      return time_ps(2 * bytes, settings.memory_bytes_per_s);
    case Way::host:
      return time_ps(bytes, settings.pageable_bytes_per_s);
  }
  return 0;
}

Call::Call(State& state, std::uint64_t cost_ps)
    : state_(state), entered_(dryfly_device_enter != nullptr ? dryfly_device_enter() : -1) {
  pthread_mutex_lock(&state_.lock);
  if (timed()) wait_until(now() + cost_ps);
  state_.settle(now());
}

Call::~Call() {
  pthread_mutex_unlock(&state_.lock);
  if (timed()) dryfly_device_leave(entered_);
}

std::uint64_t Call::now() const { return timed() ? dryfly_device_now() : far_future; }

void Call::wait_until(std::uint64_t at_ps) {
  if (!timed()) return;
  dryfly_device_wait(at_ps);
  state_.settle(now());
}

void Call::finish_untimed() {
  if (!timed()) state_.settle(far_future);
}

}  // namespace dryfly::gpu
