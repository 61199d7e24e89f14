// The forming of groups for reductions, by software, in a tree of a radix that the user chooses (zbcoll): passes up and
// down the tree, each step of them a packet and what it costs the CPUs, which are not asked for it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/nic/legs.hpp"
#include "core/nic/nic.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::nic {

class Joins {
 public:
  Joins(Legs& legs, Host& host) : legs_(legs), host_(host) {}

  void begin(const JoinCommand& command);
  void arrived(const Leg& leg);
  // One of its packets is lost for good: nobody gets this group who has not got it already.
  void lost(const Leg& leg);

 private:
  struct Join {
    JoinCommand command;
    std::uint32_t life = 0;
    std::uint32_t unfinished = 0;
    struct Place {
      std::uint32_t missing = 0;
      std::uint32_t passes_left = 0;
    };
    std::vector<Place> places;
  };

  Leg leg(LegKind kind, std::uint32_t join, std::uint32_t place) const {
    return {.kind = kind, .owner = join, .life = joins_[join].life, .place = place};
  }
  void send(LegKind kind, std::uint32_t join, std::uint32_t from, std::uint32_t to);
  std::uint32_t children_in(const Join& join, std::uint32_t place) const;
  void begin_pass(std::uint32_t join, std::uint32_t place);
  void all_parts_read(std::uint32_t join, std::uint32_t place);
  void read_down(std::uint32_t join, std::uint32_t place);

  Legs& legs_;
  Host& host_;
  Pool<Join> joins_;
  std::uint32_t lives_ = 0;
};

}  // namespace dryfly::nic
