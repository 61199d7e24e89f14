// A rank of a skeleton: its clock, and the verbs of MPI that skeletons are written in. The verbs cost what they cost on
// the machine's CPU (docs/model/host-costs.md), the bytes go by the job's carriage. There are no payloads: a verb takes
// a size.
//
// Messages of one source, target and tag are matched in the order in which they arrive. Left out: communicators as a
// part of matching (collectives have tags of their own, core/motif/collective/communicator.hpp), truncation, and that a
// long message may arrive behind a shorter one of its tag that was sent later.
#pragma once

#include <coroutine>
#include <cstdint>

#include "core/motif/job/posted.hpp"
#include "core/motif/job/task.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

class Job;
class Reductions;

// Of records, by their numbers.
struct RecordList {
  std::uint32_t first = no_record;
  std::uint32_t last = no_record;
};

// What a verb has begun, or nothing where that is over. May be forgotten: wait_all() waits for it as well.
struct Pending {
  std::uint32_t record = no_record;
  std::uint16_t serial = 0;  // of the record's owners
  bool own = false;          // no receive
};

// Told of what a rank watches, for programs that wait for whichever of several things comes first.
class Watcher {
 public:
  // The rank can see from `visible` on that this record of its own is complete.
  virtual void completed(std::uint32_t record, Instant visible) = 0;
  // The earliest instant at which the rank can see something that it has not taken note of; never: nothing is known.
  virtual Instant earliest() const = 0;

 protected:
  ~Watcher() = default;
};

// How a rank hears that its access is complete: by an event that it reads, which costs its CPU something, or by a
// counter that it looks at once for all.
enum class Told : std::uint8_t { by_event, by_counter };

// Which of its NICs a rank sends by: lane 0 is the placement's, others are the job's (Job::lane).
using Lane = std::uint8_t;

// Two cache lines: what a message touches of its target is most of what it costs.
class alignas(64) Rank {
 public:
  std::uint32_t id() const { return id_; }
  std::uint32_t count() const;  // of the job's ranks
  Job& job() { return *job_; }
  // What this rank's clock says.
  Instant now() const { return clock_; }
  // A driver's: of the core that gives the next verb.
  void set_clock(Instant clock) { clock_ = clock; }
  void work(Duration cost);  // on its core, which may have detours

  bool ended() const { return ended_; }
  const PostedList& posted() const { return posted_; }

  // Up to JobCosts::injected_max it is over at once, between nodes.
  Pending isend(std::uint32_t to, std::uint32_t tag, Bytes size, Lane lane = 0);
  Pending irecv(std::uint32_t from, std::uint32_t tag);  // may be any_rank, any_tag
  // In the switches.
  Reductions& reductions();
  // One-sided. Complete: the bytes are in the target's memory, or here.
  Pending put(std::uint32_t to, Bytes size, Told told = Told::by_event);
  Pending get(std::uint32_t from, Bytes size, Told told = Told::by_event);

  struct Waiting {
    Rank& rank;
    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> resumed) const;
    void await_resume() const noexcept { rank.pay_for_own(); }
  };
  // Until all that this rank has begun is complete.
  [[nodiscard]] Waiting wait_all();
  [[nodiscard]] Waiting wait(Pending pending);
  [[nodiscard]] Waiting wait(Pending first, Pending second);
  [[nodiscard]] Waiting send(std::uint32_t to, std::uint32_t tag, Bytes size) { return wait(isend(to, tag, size)); }
  [[nodiscard]] Waiting recv(std::uint32_t from, std::uint32_t tag) { return wait(irecv(from, tag)); }
  [[nodiscard]] Waiting sendrecv(std::uint32_t to, std::uint32_t from, std::uint32_t tag, Bytes size) {
    const Pending received = irecv(from, tag);
    return wait(received, isend(to, tag, size));
  }

  // What this rank has begun is told to the watcher when it is complete. The answer is `never`, or where it is complete
  // already the instant from which on that can be seen, and then the watcher is not told.
  void watch_with(Watcher& watcher) { watcher_ = &watcher; }
  [[nodiscard]] Instant watch(Pending pending);
  struct WaitingForAny {
    Rank& rank;
    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> resumed) const;
    void await_resume() const noexcept;
  };
  // Until the watcher knows of something that can be seen.
  [[nodiscard]] WaitingForAny wait_for_any() { return {*this}; }

  struct Computing {
    Rank& rank;
    Duration work;
    bool await_ready() const noexcept { return work.ps == 0; }
    void await_suspend(std::coroutine_handle<> resumed) const;
    void await_resume() const noexcept {}
  };
  // Takes so long on this rank's core.
  [[nodiscard]] Computing compute(Duration work) { return {*this, work}; }

  struct Gathering {
    Rank& rank;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> resumed) const;
    void await_resume() const noexcept {}
  };
  // Until all ranks of the job have come here; they go on together, and no message tells them. For programs that
  // measure and must not be measured.
  [[nodiscard]] Gathering gather() { return {*this}; }

  // From now on the rank's time counts for this phase, one of Job::phases(). 0: none.
  void enter(std::uint16_t phase);

 private:
  friend class Job;
  friend class Reductions;
  enum class Want : std::uint8_t { nothing, all, some, any, time };

  bool waits() const { return want_ == Want::all || want_ == Want::some; }
  bool has_what_it_wants() const { return want_ == Want::all ? open_ == 0 : awaited_ == 0; }
  // When it can have seen it.
  Instant sees_it() const;
  // Its CPU takes what has come no sooner than that.
  void see(Instant visible);
  // What is over of its own and visible by now has cost something too.
  void pay_for_own();

  Job* job_ = nullptr;
  Watcher* watcher_ = nullptr;
  std::coroutine_handle<> resumed_;
  Instant clock_{};
  Instant own_seen_{};       // when all that is complete of sends and accesses can be seen
  Instant received_seen_{};  // and of receives that were not waited for
  Instant until_{};          // what is waited for by name can be seen
  Instant wake_ = never;     // goes on then, if nothing comes before
  Duration owed_{};          // CPU time for completions that nobody has waited for yet
  Duration own_cost_{};      // and for that which own_seen_ is about
  std::uint32_t id_ = 0;
  std::uint32_t open_ = 0;     // begun and not complete
  std::uint32_t awaited_ = 0;  // of these, what is waited for by name
  PostedList posted_;
  RecordList unexpected_;
  Want want_ = Want::nothing;
  bool ended_ = false;
};
static_assert(sizeof(Rank) == 128);

}  // namespace dryfly::motif
