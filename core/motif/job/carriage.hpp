// How the bytes of a skeleton's messages get from NIC to NIC: what a level of `dryfly predict` decides. A job gives a
// carriage one *load* at a time, a message or a part of a long one, at the instant at which it may leave its NIC; the
// job keeps the queue of each NIC.
//
// A carriage that answers at once has looked at what lies on the way then; one that simulates the network answers
// later, by telling its listener.
#pragma once

#include <cstdint>
#include <optional>

#include "core/contract/network.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

struct Load {
  NicId from;
  NicId to;
  Bytes size;     // payload
  Instant ready;  // at the source's NIC, not before the engine's now
  std::uint32_t message = 0;
  bool ordered = true;
};

struct Carried {
  Instant left;             // the source's NIC may begin the next load
  Instant arrived;          // the last byte is at the target's NIC
  Instant answered;         // the acknowledgement is back
  bool sent_again = false;  // after a time-out, so that it comes alone
};

class CarriageListener {
 public:
  virtual void carried(const Load& load, const Carried& times) = 0;

 protected:
  ~CarriageListener() = default;
};

class Carriage {
 public:
  virtual ~Carriage() = default;
  // The largest load.
  virtual Bytes part() const = 0;
  // Loads are given at the instant at which they are ready, and carry() answers nothing: the listener will be told when
  // the load has arrived, of that instant.
  virtual bool answers_later() const { return false; }
  virtual std::optional<Carried> carry(const Load& load) = 0;
};

}  // namespace dryfly::motif
