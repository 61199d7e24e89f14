// The simulated clock and the queue of what happens next. Events are 16 bytes and totally ordered by
// (instant, key); the key begins with the class of the component, so the order never depends on insertion,
// addresses or threads. Two events that compare equal must be interchangeable.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "core/unit/unit.hpp"

namespace dryfly {

struct Event {
  std::uint64_t at_ps = 0;
  std::uint64_t key = 0;  // bits 63..60: component class; the rest belongs to the class
};

// Classes double as the phase of an instant: at one picosecond, fabric events run before NIC events, and these
// before host events.
// A host that shares the engine with another has a class of its own, from `further_hosts` on: at one instant its events
// run behind all others.
enum class ComponentClass : std::uint8_t {
  fabric = 0,
  nic = 1,
  host = 2,
  workload = 3,
  background = 4,
  further_hosts = 5
};
inline constexpr unsigned component_class_shift = 60;

class Handler {
 public:
  virtual ~Handler() = default;
  virtual void handle(Event event) = 0;
  // The event will be handled soon, and sooner with each stage: what it needs may be prefetched into the cache. Changes
  // nothing. A large machine's state is far larger than any cache, and waiting for it is most of the time it takes.
  virtual void prefetch(Event, unsigned /*stage*/) const {}
  static constexpr unsigned most_fetch_stages = 4;
};

class Engine {
 public:
  // Events are sorted a slot of 2^slot_width_bits picoseconds at a time: some tens to hundreds of them should fall into
  // one. Without influence on any result.
  static constexpr unsigned usual_slot_width_bits = 9;
  explicit Engine(unsigned slot_width_bits = usual_slot_width_bits);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // One handler for each class, which prefetches in so many stages.
  void attach(ComponentClass component_class, Handler& handler, unsigned fetch_stages = 0);
  // The class of this host: `host` for the first, another for each further one.
  ComponentClass attach_host(Handler& handler);

  Instant now() const { return now_; }
  // `at` must not lie before now(). `key` must carry the class bits of an attached handler.
  void schedule(Instant at, std::uint64_t key);

  // Runs every event with instant < limit, in order; handlers may schedule more and may lower the limit. On
  // return now() is the instant of the last event run: it does not move to the limit.
  void run(Instant limit);
  // To be called from a handler while run() is under way: run() stops before the first event at or after `limit`.
  void lower_limit(Instant limit);
  // Of the last run: as far as it was to go when it ended.
  Instant limit() const { return limit_; }

  // The instant of the earliest pending event, or `never`.
  Instant next();
  std::uint64_t events_run() const { return events_run_; }
  // How many have still to be run. Counts them, so it is not for often.
  std::uint64_t events_pending() const;

 private:
  void fetch_ahead() const;

  struct Queue;
  std::unique_ptr<Queue> queue_;
  std::array<Handler*, 16> handlers_{};
  std::array<std::uint8_t, 16> fetch_stages_{};
  unsigned most_fetch_stages_ = 0;  // of all handlers
  Instant now_{};
  Instant limit_{};
  std::uint64_t events_run_ = 0;
};

}  // namespace dryfly
