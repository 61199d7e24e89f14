// What a job remembers of everything that has begun and is not over: a record of 32 bytes for each message, each
// one-sided access and each posted receive. Tens of millions are under way at once on a whole machine.
#pragma once

#include <cstdint>

#include "core/motif/job/rank.hpp"
#include "core/unit/pool.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

// What is under way of a message, or which list a receive is in.
enum class Leg : std::uint8_t {
  eager,         // the message itself
  request,       // of a rendezvous, to the target
  get,           // the target's NIC asks for the payload
  data,          // the payload of a rendezvous
  put,           // payload of a one-sided write
  read_request,  // to whose memory is read
  read_data,     // and back
  receive,
  part,            // of a reduction in the switches, to the parent
  result,          // and of it, down
  awaited_parts,   // at its root: all parts
  awaited_result,  // at anybody's NIC
};

struct Record {
  std::uint32_t rank = 0;  // who has begun it
  std::uint32_t peer = 0;  // the other one; any_rank
  std::uint32_t tag = 0;
  std::uint32_t next = no_record;     // in the list that it is in
  std::uint64_t bytes = 0;            // of the payload; in parts: the number of its Parts
  std::uint32_t partner = no_record;  // of a message: the receive that has it
  Leg leg = Leg::eager;
  bool awaited : 1 = false;  // by name
  bool over : 1 = false;     // for who has begun it: the source of an eager message is through before its target is
  bool in_parts : 1 = false;
  bool watched : 1 = false;   // its rank's watcher is told
  bool counted : 1 = false;   // an access of which a counter tells
  std::uint8_t lane : 3 = 0;  // which of its rank's NICs it goes by
  std::uint16_t serial = 0;
};
static_assert(sizeof(Record) == 32);

// Records are in the order in which they were first used, on large pages.
class Records {
 public:
  std::uint32_t begin(const Record& record) {
    const std::uint32_t index = pool_.acquire_as_left();
    pool_.prefetch_free(soon);  // a rank begins dozens in a row
    const auto serial = static_cast<std::uint16_t>(pool_[index].serial + 1);
    pool_[index] = record;
    pool_[index].serial = serial;
    return index;
  }
  void end(std::uint32_t index) {
    ++pool_[index].serial;
    pool_.release(index);
  }
  Record& operator[](std::uint32_t index) { return pool_[index]; }
  const Record& operator[](std::uint32_t index) const { return pool_[index]; }
  void prefetch(std::uint32_t index) const { pool_.prefetch(index); }
  std::size_t most() const { return pool_.size(); }

 private:
  static constexpr std::size_t soon = 8;

  Pool<Record, 16> pool_;
};

}  // namespace dryfly::motif
