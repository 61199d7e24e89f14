// What collectives are written in beside the verbs of a rank. A blocking send of a payload that goes to the NIC within
// the command is over at once, as MPI libraries send it (docs/model/nic-protocols.md#message-protocols); a longer one
// is over when it is acknowledged.
#pragma once

#include <cstdint>

#include "core/motif/job/job.hpp"
#include "core/motif/job/rank.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

inline bool over_at_once(Rank& me, Bytes size) { return size <= me.job().costs().pushed_max; }

// Sends and receives, and waits for both.
[[nodiscard]] inline Rank::Waiting exchange(Rank& me, std::uint32_t to, Bytes size, std::uint32_t from,
                                            std::uint32_t tag) {
  const Pending received = me.irecv(from, tag);
  const Pending sent = me.isend(to, tag, size);
  return over_at_once(me, size) ? me.wait(received) : me.wait(received, sent);
}

// Combining so many bytes with one's own.
[[nodiscard]] inline Rank::Computing combine(Rank& me, Bytes size) {
  return me.compute(transmission_time(size, me.job().costs().copy_rate));
}

}  // namespace dryfly::motif
