// Messages that go on while a rank computes: rounds of sends and receives, each begun when the one before it is
// complete, and moved on when the rank looks or waits. The broadcasts and row exchanges of HPL are such schedules, as
// in programs/hpl/traffic.hpp, and collectives of GPUs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/motif/job/rank.hpp"
#include "core/motif/job/task.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif::flight {

struct Transfer {
  std::uint32_t peer = 0;
  std::uint32_t tag = 0;
  std::uint64_t bytes = 0;  // none: there is no message
  bool is_send = false;
  bool is_awaited = true;  // by the next round
};
using Transfers = std::vector<Transfer>;

// Many rounds alike may be run as fewer that move as much, and then each round left out takes its latency.
struct Lumping {
  std::uint32_t rounds = 0;  // 0: all are run
  Duration latency{};

  std::uint32_t run(std::uint32_t all) const { return rounds == 0 || rounds > all ? all : rounds; }
  // Of all rounds, the first that the lump of this number stands for.
  std::uint32_t first(std::uint32_t lump, std::uint32_t all) const {
    return static_cast<std::uint32_t>(std::uint64_t{all} * lump / run(all));
  }
  Duration rest(std::uint32_t all) const { return latency * (all - run(all)); }
};

class Rounds {
 public:
  virtual ~Rounds() = default;
  // Adds what round `number` consists of; false: there is no such round.
  virtual bool round(std::uint32_t number, Transfers& transfers) const = 0;
  // What passes behind the last of them.
  virtual Duration rest() const { return {}; }
};

class Schedule {
 public:
  void set(const Rounds* rounds, Lane lane) {
    rounds_ = rounds;
    lane_ = lane;
    next_ = 0;
  }
  bool done() const { return rounds_ == nullptr && pending_.empty(); }

 private:
  friend class Traffic;
  struct Request {
    std::uint32_t record;
    Instant visible;
  };

  const Rounds* rounds_ = nullptr;  // none: all of them have begun
  std::vector<Request> pending_;
  std::uint32_t next_ = 0;
  Lane lane_ = 0;
};

class Traffic final : public Watcher {
 public:
  explicit Traffic(Rank& rank) : rank_(rank) { rank.watch_with(*this); }

  void start(Schedule& schedule);
  void poll();
  Task wait(Rank& me, Schedule& schedule);
  Task wait_for_all(Rank& me);
  // Until then, whatever comes.
  Task pass(Rank& me, Instant until);
  bool idle() const { return active_.empty(); }

 private:
  void completed(std::uint32_t record, Instant visible) override;
  Instant earliest() const override;
  void start_next(Schedule& schedule);
  void begin(Schedule& schedule, const Transfers& transfers);
  void take();
  void forget_done();

  Rank& rank_;
  Instant until_ = never;
  std::vector<Schedule*> active_;
};

}  // namespace dryfly::motif::flight
