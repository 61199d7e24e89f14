// Where messages leave the NICs of a job: one queue for each NIC, in which the parts of long messages take turns with
// all else, and which a single packet overtakes: the NIC sends a packet of each in turn. A load goes to the carriage at
// the instant at which its NIC can send it, so that what waits in a NIC takes up nothing of the links behind it.
//
// Models docs/model/nic-protocols.md#message-protocols of what leaves: the interval between commands, and what travels
// with each leg of a message.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/motif/job/backlog.hpp"
#include "core/motif/job/carriage.hpp"
#include "core/motif/job/lists.hpp"
#include "core/motif/job/placement.hpp"
#include "core/motif/job/porter.hpp"
#include "core/motif/job/records.hpp"
#include "core/motif/job/turns.hpp"
#include "core/nic/answering.hpp"
#include "core/unit/fetch.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly::motif {

class Outlets final : private CarriageListener {
 public:
  class Listener {
   public:
    // All of a message's leg has been carried, or is certain to be: these are the instants of its last byte.
    virtual void settled(std::uint32_t message, Instant arrived, Instant answered) = 0;
    // What a job's events are about: a rank, a message that is in its target's hands, or one that leave() is wanted
    // for, or that part_there() is, or a NIC that leave_nic() is.
    // In this order at one instant: a part is there before its message is over.
    enum class Kind : std::uint8_t { rank, part, arrival, leaving, nic };
    virtual void schedule(Instant at, Kind kind, std::uint32_t index) = 0;

   protected:
    ~Listener() = default;
  };

  // `lead`: what is ready no later than that takes its links at once. All messages have about that lead, so that their
  // order among each other is kept, and each saves an event.
  // `ingress`: from the last byte at the target's NIC until a message is matched.
  // `shares`: loads may be brought on a second core, which changes nothing but time; only where ranks of a node never
  // send by NICs.
  Outlets(const Placement& placement, Carriage& carriage, Records& records, Listener& listener, Bytes rendezvous_head,
          Bytes packet, Duration command_interval, const nic::Answering& answering, const Turns& turns,
          Duration ingress, Duration lead, bool shares);

  // How many loads were.
  std::uint64_t brought_aside() const { return porter_ == nullptr ? 0 : porter_->given(); }
  // Until nothing is left to happen.
  void run(Engine& engine);

  // Who is told by a carriage that answers later.
  CarriageListener& carriage_listener() { return *this; }
  // SpecError: a node has no such NIC.
  std::uint8_t add_lane(const Placement& placement, const std::vector<std::uint32_t>& nics);
  // The leg that the message is at wants to leave at `ready`.
  void offer(std::uint32_t message, Instant ready, Instant now);
  // The Get that the message was is at the NIC that has what is asked for, which takes `fetch` to read it.
  void answer(std::uint32_t message, Duration fetch, Instant now);
  void leave_nic(std::uint32_t nic, Instant now);
  void leave(std::uint32_t message, Instant now);
  // A part of the answer that the message is, and not its last.
  void part_there(std::uint32_t message, Instant now);
  // Into the cache: which NIC the rank has, and when that is there, the NIC.
  void prefetch_lane(std::uint32_t rank) const { fetch_line(&lanes_[0][rank]); }
  void prefetch_outlet(std::uint32_t rank) const { fetch_line(&outlets_[lanes_[0][rank]]); }
  void prefetch_parts(const Record& record) const {
    if (record.in_parts) fetch_lines(&parts(record), sizeof(Parts));
  }
  Bytes payload(const Record& record) const { return {record.in_parts ? parts(record).bytes : record.bytes}; }
  // The message is over.
  void forget(const Record& record, Instant now) {
    if (record.in_parts) forget_parts(static_cast<std::uint32_t>(record.bytes), now);
  }

 private:
  using Kind = Listener::Kind;
  struct alignas(64) Outlet {
    Backlog all;
    Backlog packets;  // loads of a single packet, which do not wait for longer ones
    RecordList waiting;
    Instant next_answer;  // it may begin to fetch for one
    bool scheduled = false;
  };
  void carried(const Load& load, const Carried& times) override;
  void depart(std::uint32_t message, Instant start, Instant now);
  // Its NIC may begin the next load at `left`.
  void occupy(const Load& load, const Record& record, Instant left);
  // Gives the load to the porter, if there is one and nobody has to know its answer now.
  bool give(const Load& load, const Record& record, Instant now);
  // What has been brought, and at least what was given as the first so many.
  void take(std::uint64_t least);
  Parts& divide(Record& record, std::uint64_t bytes);
  // What may leave of that queue does.
  void advance(std::uint32_t queue, Instant now);
  void forget_parts(std::uint32_t parts, Instant now);
  void tell_turns(const Load& load, Parts& answer, Instant now);
  void add_lane(LargeVector<std::uint32_t> nics);
  Outlet& outlet_of(const Record& record);
  Load load_of(std::uint32_t message, Instant start) const;
  std::uint64_t bytes_on_the_way(const Record& record) const;
  const Parts& parts(const Record& record) const { return parts_[static_cast<std::uint32_t>(record.bytes)]; }
  Parts& parts(const Record& record) { return parts_[static_cast<std::uint32_t>(record.bytes)]; }

  Carriage& carriage_;
  Records& records_;
  Listener& listener_;
  const Bytes rendezvous_head_;
  const Bytes packet_;
  const Duration command_interval_;
  const nic::Answering answering_;
  const Duration ingress_;
  const Duration lead_;
  const std::uint64_t part_;
  const std::optional<Duration> least_way_;
  std::vector<LargeVector<std::uint32_t>> lanes_;  // of each, the NIC of each rank
  LargeVector<Outlet> outlets_;                    // of each NIC
  PartsPool parts_;
  Turns turns_;
  std::unique_ptr<Porter> porter_;
  std::uint32_t alone_ = 0;         // so many will not be given to it
  std::uint32_t alone_next_ = 0;    // and the next time
  std::uint64_t given_before_ = 0;  // when that was last said
};

}  // namespace dryfly::motif
