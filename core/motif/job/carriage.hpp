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
#include "core/unit/check.hpp"
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

  // What carry() does, in two parts that share no state, so that another thread may do the second: a load is brought
  // after all that left before it. From being ready to its arrival, at least, between different NICs; none: there are
  // no such parts.
  virtual std::optional<Duration> least_way() const { return std::nullopt; }
  // The load leaves its NIC, and then its `ready` says when. The answer: that NIC may begin the next one.
  virtual Instant leave(Load&) { DRYFLY_UNREACHABLE("this carriage has no parts"); }
  virtual Carried bring(const Load&) { DRYFLY_UNREACHABLE("this carriage has no parts"); }
  // The load will be brought soon: into the cache with what it needs.
  virtual void prefetch(const Load&) const {}
};

}  // namespace dryfly::motif
