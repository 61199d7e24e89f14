// What is under way between two end-points, and on whose behalf. A parcel fits the 32-bit handle of a Transfer, so
// that whoever carries it (network, on-node link, the NIC's own stages) needs to know nothing of protocols.
#pragma once

#include <cstdint>

#include "core/contract/host.hpp"
#include "core/contract/memory.hpp"
#include "core/contract/network.hpp"
#include "core/nic/gpu_copies.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

enum class Step : std::uint8_t {
  message,       // to the target: an inline or eager message, or a rendezvous request with the head of the payload
  get_request,   // to the source, by its target's NIC: send the rest of the rendezvous payload
  get_data,      // to the target: that rest
  placement,     // nowhere: an unexpected message is on its way from the overflow buffer to its receive
  done,          // to the source: the rendezvous is over
  rma_request,   // to the target: a write or atomic with its operands, or the request of a read
  rma_response,  // to the source: data read or fetched
  drop_notice,   // to the target: how many of the source's messages it has dropped while it was disabled
  resume,        // to the source: the target takes messages again
  matched,       // to the source: a receive has taken the message that was unexpected
  collective,    // reductions and joins: between places of a tree, and their NIC's own stages
  no_room,       // to whom has sent a drop notice or a resume: the queue for such things was full
  get_part,      // a part of get_data or rma_response, which no one but GetQueues sees
  count
};

// What two providers tell each other of flow control; names a peer, not a message.
inline bool is_control(Step step) { return step == Step::drop_notice || step == Step::resume || step == Step::no_room; }

struct Parcel {
  Step step = Step::message;
  std::uint32_t item = 0;  // the index of its message, peer, access, leg or part

  static constexpr unsigned step_bits = 4;
  static constexpr std::uint32_t item_limit = 1U << (32 - step_bits);

  static Parcel of_handle(std::uint32_t handle) {
    return {static_cast<Step>(handle & ((1U << step_bits) - 1)), handle >> step_bits};
  }
  std::uint32_t handle() const {
    DRYFLY_CHECK(item < item_limit);
    return item << step_bits | static_cast<std::uint32_t>(step);
  }
};
static_assert(static_cast<unsigned>(Step::count) <= 1U << Parcel::step_bits);

struct Journey {
  EndpointId from;
  EndpointId to;
  Bytes size;
  TrafficClass traffic_class = TrafficClass::best_effort;
  bool ordered = true;
  CopyEnds ends{};   // of its payload, as far as they are known
  DmaPages pages{};  // from where it is fetched
  SourceMemory memory{};
};

// Whose memory a parcel ends in, and how much of it is payload.
struct Landing {
  EndpointId at;
  Bytes size;
  std::uint8_t gpu = 0;  // as CopyEnds has it; 0 too where that is known when it has been matched only
  DmaPages pages{};      // and none then
};

// Who is told when a parcel is there.
class Recipient {
 public:
  virtual ~Recipient() = default;
  virtual void arrived(Parcel parcel, std::uint32_t switch_hops) = 0;
  // Asked only of parcels that end in memory.
  virtual Landing landing_of(Parcel parcel) const = 0;
  // It will be arrived() or acknowledged() soon, and sooner with each stage (0 to 2): what that needs may be
  // prefetched into the cache. Changes nothing.
  virtual void soon(Parcel parcel, unsigned stage) const = 0;
  // Once for each parcel that went through the network, some time after the network had delivered it; not
  // necessarily after arrived(). On-node parcels have no acknowledgement.
  virtual void acknowledged(Parcel parcel) = 0;
  // In the end of Transport::flush().
  virtual void flushed(Parcel parcel) = 0;
  // Instead of acknowledged(): the network has given it up; `delivered` tells whether it was delivered all the same.
  virtual void failed(Parcel parcel, bool delivered) = 0;
};

}  // namespace dryfly::nic
