// What collectives are written in beside the verbs of a rank.
#pragma once

#include <cstdint>

#include "core/motif/job/job.hpp"
#include "core/motif/job/rank.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

// Sends and receives, and waits for both.
[[nodiscard]] inline Rank::Waiting exchange(Rank& me, std::uint32_t to, Bytes size, std::uint32_t from,
                                            std::uint32_t tag) {
  const Pending received = me.irecv(from, tag);
  const Pending sent = me.isend(to, tag, size);
  return me.wait(received, sent);
}

// Combining so many bytes with one's own.
[[nodiscard]] inline Rank::Computing combine(Rank& me, Bytes size) {
  return me.compute(transmission_time(size, me.job().costs().copy_rate));
}

}  // namespace dryfly::motif
