#include "gpu/state.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <new>

#include "gpu/device_clock.hpp"

namespace dryfly::gpu {

namespace {

constexpr std::uint64_t far_future = ~std::uint64_t{0};
constexpr int no_virtual_time = -2;  // what dryfly_device_enter answers

thread_local int device_of_thread = 0;
thread_local bool in_function = false;

void say_that_nobody_tells() {
  static bool said = false;
  if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  fputs(
      "dryfly: a GPU's stream waits for memory that no NIC tells of: such waits need the network between the ranks of "
      "a node, too (--on-node network), and a provider that is loaded\n",
      stderr);
}

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
  timeline.share_links(settings);
  waits.open(timeline, pending);
  pools.open(settings.devices, memory, timeline, waits);
}

Result State::usable() const {
  if (settings.devices == 0) return Result::no_device;
  return in_function ? Result::not_permitted : Result::done;
}

void State::settle(std::uint64_t now_ps, bool calls) {
  Work work;
  while (calls || pending.first() == nullptr || !pending.first()->of_host) {
    if (!pending.take_due(now_ps, work)) return;
    if (work.function == nullptr) {
      move_bytes(work);
      if (!beside_program_) continue;
      const std::uint64_t address = reinterpret_cast<std::uint64_t>(work.to);
      const std::uint64_t rows = (work.rows.count - 1) * work.rows.to_pitch + work.rows.width;
      waits.look(address, work.word_bytes != 0 ? work.word_bytes : rows, work.at_ps);
      if (work.word_bytes == 0) continue;
      pthread_mutex_unlock(&lock);
      if (dryfly_device_wrote != nullptr) dryfly_device_wrote(address, work.at_ps);
      pthread_mutex_lock(&lock);
      continue;
    }
    if (beside_program_) waits.remember();
    pthread_mutex_unlock(&lock);
    in_function = true;
    work.function(work.to);
    in_function = false;
    if (beside_program_ && dryfly_device_wrote != nullptr) dryfly_device_wrote(0, work.at_ps);
    pthread_mutex_lock(&lock);
    if (beside_program_) waits.look(0, 0, work.at_ps);
  }
}

// As the rank's clock asks for them; it does so outside of the runtime's calls, or where these wait.
void State::go_on_beside_program() {
  if (beside_program_ || dryfly_device_streams == nullptr) return;
  beside_program_ = true;
  const auto next_ps = [] {
    State& state = get();
    pthread_mutex_lock(&state.lock);
    const Work* const first = state.pending.first();
    const std::uint64_t at_ps = first != nullptr && !first->of_host ? first->at_ps : far_future;
    pthread_mutex_unlock(&state.lock);
    return at_ps;
  };
  const auto wait = [] {
    State& state = get();
    pthread_mutex_lock(&state.lock);
    const bool any = state.waits.holds_any();
    pthread_mutex_unlock(&state.lock);
    return any;
  };
  const auto act = [](std::uint64_t at_ps) {
    State& state = get();
    pthread_mutex_lock(&state.lock);
    state.settle(at_ps, false);
    pthread_mutex_unlock(&state.lock);
  };
  const auto written = [](std::uint64_t address, std::uint64_t value, std::uint32_t bytes, std::uint64_t at_ps) {
    State& state = get();
    pthread_mutex_lock(&state.lock);
    state.waits.written(address, value, bytes, at_ps);
    pthread_mutex_unlock(&state.lock);
  };
  dryfly_device_streams(next_ps, wait, act, written);
}

bool State::watch(std::uint64_t address, std::uint32_t bytes, std::uint64_t now_ps) {
  if (!waits.is_to_be_watched(address, bytes)) return true;
  if (!waits.watch(address, bytes)) return false;
  pthread_mutex_unlock(&lock);
  const bool is_in_memory = dryfly_device_watch == nullptr || dryfly_device_watch(address, bytes) != 0;
  pthread_mutex_lock(&lock);
  if (is_in_memory) waits.look(address, bytes, now_ps);
  return true;
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
    : state_(state), entered_(dryfly_device_enter != nullptr ? dryfly_device_enter() : no_virtual_time) {
  pthread_mutex_lock(&state_.lock);
  if (timed()) wait_until(now() + cost_ps);
  state_.settle(now());
}

Call::~Call() {
  pthread_mutex_unlock(&state_.lock);
  if (timed()) dryfly_device_leave(entered_);
}

std::uint64_t Call::now() const {
  if (timed()) return dryfly_device_now();
  return entered_ == no_virtual_time ? far_future : state_.untimed_until_ps();
}

// The clock has streams go on first, which take the lock themselves.
void Call::wait_until(std::uint64_t at_ps) {
  if (!timed()) return;
  pthread_mutex_unlock(&state_.lock);
  dryfly_device_wait(at_ps);
  pthread_mutex_lock(&state_.lock);
  state_.settle(now());
}

template <class IsHeld>
Result Call::wait_while(IsHeld is_held) {
  while (timed() && is_held()) {
    // Who waits for the streams calls what they have to call.
    if (const Work* const first = state_.pending.first(); first != nullptr && first->of_host) {
      wait_until(first->at_ps);
      continue;
    }
    pthread_mutex_unlock(&state_.lock);
    const bool goes_on = dryfly_device_serve != nullptr && dryfly_device_serve() != 0;
    pthread_mutex_lock(&state_.lock);
    state_.settle(now());
    if (!goes_on && is_held()) {
      say_that_nobody_tells();
      return Result::not_permitted;
    }
  }
  return Result::done;
}

Result Call::wait_for(const Stream& stream) {
  if (const Result result = wait_while([&] { return state_.waits.holds(stream); }); result != Result::done)
    return result;
  wait_until(state_.timeline.end_of(stream));
  return Result::done;
}

Result Call::wait_for_device(int device) {
  const Result result = wait_while([&] { return state_.waits.holds_of(device); });
  if (result == Result::done) wait_until(state_.timeline.end_of_device(device));
  return result;
}

Result Call::wait_for_all() {
  const Result result = wait_while([&] { return state_.waits.holds_any(); });
  if (result == Result::done) wait_until(state_.timeline.end_of_all());
  return result;
}

Result Call::wait_for(const Event& event) {
  const Result result = wait_while([&] { return event.ticket != 0; });
  if (result == Result::done && event.recorded) wait_until(event.at_ps);
  return result;
}

void Call::finish_untimed() {
  if (!timed()) state_.settle(now());
}

}  // namespace dryfly::gpu
