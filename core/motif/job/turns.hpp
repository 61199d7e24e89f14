// The queues by which the NICs of a job get (core/nic/get_turns.hpp): which part of which answer may leave next. What
// is longer than a packet waits here for its turn, then in the outlet of its source.
//
// Models docs/model/nic-protocols.md#queues-of-gets. A part is under way until it is at the NIC, the last one until it
// is placed there.
#pragma once

#include <array>
#include <cstdint>

#include "core/motif/job/records.hpp"
#include "core/nic/get_turns.hpp"
#include "core/unit/large_pages.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::motif {

// A payload that travels as several loads: it is longer than the carriage takes at once, or has to wait for its turn.
struct Parts {
  static constexpr std::uint32_t no_queue = ~std::uint32_t{0};

  std::uint64_t bytes = 0;    // of the whole payload
  std::uint64_t left = 0;     // may leave, and has not been carried
  std::uint64_t to_come = 0;  // has not arrived
  Instant arrived{};          // of what has
  Instant answered{};

  // Of an answer that takes turns:
  std::uint64_t held = 0;                                             // has had no turn yet
  std::array<std::uint64_t, nic::GetQueueSpec::at_once> under_way{};  // bytes of each part, oldest first
  std::uint64_t come = 0;                                             // of the oldest that is not there yet
  std::uint32_t there = 0;                                            // how many parts of those under way are
  bool has_begun = false;
  std::uint32_t queue = no_queue;
  std::uint32_t message = no_record;
  std::uint32_t next = no_record;  // in the queue
};

using PartsPool = Pool<Parts>;

class Turns {
 public:
  Turns(const nic::GetQueueSpec& spec, bool gets_by_nic) : spec_(spec), gets_by_nic_(gets_by_nic) {}

  bool are_taken(Leg leg, std::uint64_t bytes) const {
    return (leg == Leg::data || leg == Leg::read_data) && bytes > spec_.packet.count && queues_for(leg) > 0;
  }
  // The answer, all of it held, is the last of a queue of that NIC.
  void enter(PartsPool& pool, std::uint32_t parts, std::uint32_t nic, Leg leg);
  // The answer of that queue of which more may leave now, and how much more than before; no_record: none.
  struct Granted {
    std::uint32_t parts = no_record;
    std::uint64_t bytes = 0;
  };
  Granted grant(PartsPool& pool, std::uint32_t queue);
  // How much of what is left may leave as one load: no more than is left of one part.
  static std::uint64_t of_one_part(const Parts& whole);
  // So much more of the answer is certain to arrive, what left first as the first; tells of how many of its parts that
  // is the rest.
  static unsigned arrive(Parts& answer, std::uint64_t bytes);
  // The oldest part, of which arrive() has told, is at the NIC.
  void end_oldest(Parts& answer);
  // A part of so many bytes is there.
  void end_part(Parts& answer, std::uint64_t bytes);
  // All of it is placed.
  void end(const Parts& answer);

 private:
  struct Queue {
    std::uint32_t first = no_record;  // Parts with something held; the first may have begun
    std::uint32_t last = no_record;
    std::uint64_t under_way = 0;  // bytes
  };

  bool is_asked_by_cpu(Leg leg) const { return leg == Leg::read_data || !gets_by_nic_; }
  std::uint32_t queues_for(Leg leg) const { return spec_.queues(is_asked_by_cpu(leg)); }

  const nic::GetQueueSpec spec_;
  const bool gets_by_nic_;
  LargeVector<std::uint32_t> asked_;  // by NIC: answers that took their turn, modulo 2^32
  LargeVector<Queue> queues_;         // of each NIC, those of rendezvous and then those of reads
};

}  // namespace dryfly::motif
