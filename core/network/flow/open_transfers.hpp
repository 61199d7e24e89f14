// The transfers under way, and the lines that ordered ones form: one for each (source, target, end-point, class) that
// has any. A line sends one transfer after the other and delivers them in that order; it keeps its way as long as
// something of it is under way.
#pragma once

#include <cstdint>
#include <map>

#include "core/contract/network.hpp"
#include "core/network/fabric/pool.hpp"
#include "core/network/fabric/qos.hpp"
#include "core/network/flow/ways.hpp"
#include "core/unit/key_table.hpp"

namespace dryfly::flow {

using fabric::none;

struct OpenTransfer {
  Journey journey;
  Bytes size;
  std::uint32_t handle = 0;
  std::uint32_t traffic_class = 0;  // of the profile
  std::uint32_t packets = 0;
  std::uint64_t work_ps = 0;   // what they take on a link
  std::uint32_t line = none;   // none: unordered
  std::uint32_t sequence = 0;  // in its line
  std::uint32_t next = none;   // in the queue it waits in
  std::uint32_t next_in_line = none;
  std::uint32_t stream = none;     // while it is one
  std::uint32_t told_packets = 0;  // of these, those that the bus knows of
  std::uint32_t reached = 0;       // of these, those that have left, at its last stop
  Bytes took;                      // of it the target's bus has been told
  bool asks_bus = false;           // an event will come when the bus is free
  std::uint32_t missing = 0;       // packets that have still to come to the target
  std::uint32_t in_window = 0;     // packets of it, if it is short
  std::uint32_t timeouts = 0;
  std::uint64_t began_ps = 0;  // to be sent, the last time
  bool reserved = false;       // at a hot target
  bool delivered = false;
  bool answer_lost = false;  // the target has it, the source does not know
  bool delayed = false;      // has timed out and waits for its delay
};

struct Line {
  std::uint64_t name = 0;
  Journey journey;                   // of the last that was sent
  std::uint32_t transfers = 0;       // not yet acknowledged
  std::uint32_t last_unsent = none;  // the next one is sent behind it
  std::uint32_t under_way = 0;       // sent and not acknowledged
  std::uint32_t begun = 0;           // ever
  std::uint32_t expected = 0;        // by the target
  std::uint64_t last_delivered_ps = 0;
  // With faults only, by sequence: what has to be sent again, and whether a time-out is awaited for all of it.
  std::map<std::uint32_t, std::uint32_t> waiting;
  bool armed = false;
  std::uint32_t sent = 0;       // ever, by sequence
  std::uint32_t parked = none;  // transfer that begins when nothing waits any more
};

class OpenTransfers {
 public:
  OpenTransfer& operator[](std::uint32_t index) { return transfers_[index]; }
  Line& line(std::uint32_t index) { return lines_[index]; }
  std::uint32_t in_use() const { return transfers_.in_use(); }

  std::uint32_t open(const Transfer& asked, std::uint32_t traffic_class) {
    const std::uint32_t index = transfers_.take();
    OpenTransfer& transfer = transfers_[index];
    transfer = OpenTransfer{};
    transfer.journey.source = asked.source;
    transfer.journey.target = asked.target;
    transfer.size = asked.size;
    transfer.handle = asked.handle;
    transfer.traffic_class = traffic_class;
    if (!asked.ordered) return index;
    transfer.line = line_of(name_of(asked, traffic_class));
    Line& line = lines_[transfer.line];
    ++line.transfers;
    transfer.sequence = line.begun++;
    return index;
  }
  // Whether it may be sent now; otherwise next_in_line() names it in its turn.
  bool is_first_in_line(std::uint32_t index) {
    if (transfers_[index].line == none) return true;
    Line& line = lines_[transfers_[index].line];
    const std::uint32_t before = line.last_unsent;
    line.last_unsent = index;
    if (before != none) transfers_[before].next_in_line = index;
    return before == none;
  }
  // This one has been sent.
  std::uint32_t next_in_line(std::uint32_t index) {
    OpenTransfer& transfer = transfers_[index];
    const std::uint32_t next = transfer.next_in_line;
    transfer.next_in_line = none;
    if (transfer.line != none && lines_[transfer.line].last_unsent == index) lines_[transfer.line].last_unsent = none;
    return next;
  }
  void close(std::uint32_t index) {
    const std::uint32_t number = transfers_[index].line;
    if (number != none && --lines_[number].transfers == 0) {
      numbers_.erase(*numbers_.find(lines_[number].name));
      lines_[number] = Line{};
      lines_.give_back(number);
    }
    transfers_.give_back(index);
  }

 private:
  struct Number {
    std::uint32_t value = none;
  };
  // NICs are fewer than 2^24, as the packet model has it.
  static std::uint64_t name_of(const Transfer& asked, std::uint32_t traffic_class) {
    static_assert(fabric::most_classes <= 16);
    DRYFLY_CHECK(asked.flow < flow_limit);
    return static_cast<std::uint64_t>(asked.flow) << 52 | static_cast<std::uint64_t>(traffic_class) << 48 |
           static_cast<std::uint64_t>(asked.source.value) << 24 | asked.target.value;
  }
  std::uint32_t line_of(std::uint64_t name) {
    std::uint32_t& line = numbers_[name].value;
    if (line == none) {
      line = lines_.take();
      lines_[line] = Line{};
      lines_[line].name = name;
    }
    return line;
  }

  fabric::Pool<OpenTransfer> transfers_;
  fabric::Pool<Line> lines_;
  KeyTable<Number> numbers_;
};

}  // namespace dryfly::flow
