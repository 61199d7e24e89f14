// The transfers under way, and the lines that ordered ones form: one for each (source, target, end-point, class) that
// has any. A line sends one transfer after the other and delivers them in that order; it keeps its way as long as
// something of it is under way.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "core/contract/network.hpp"
#include "core/network/fabric/flow_name.hpp"
#include "core/network/fabric/pool.hpp"
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
  bool asks_bus = false;           // waits in its NIC's line for the bus
  bool by_bus = false;             // goes to or from its memory by the bus, as a stream piece by piece
  std::uint8_t source_memory = 0;
  std::uint8_t target_memory = 0;
  std::uint32_t missing = 0;    // packets that have still to come to the target
  std::uint32_t in_window = 0;  // packets of it, if it is short
  std::uint32_t timeouts = 0;
  std::uint64_t began_ps = 0;  // to be sent, the last time
  bool reserved = false;       // at a hot target
  bool delivered = false;
  bool answer_lost = false;  // the target has it, the source does not know
  bool delayed = false;      // has timed out and waits for its delay
};

struct Line {
  std::uint64_t name = 0;
  Journey journey;              // of the last that was sent
  std::uint32_t transfers = 0;  // not yet acknowledged
  // Those to be sent, in the order of their sequence; the first of them is, if it is not for what waits below.
  std::uint32_t first_unsent = none;
  std::uint32_t last_unsent = none;
  bool sending = false;
  std::uint32_t under_way = 0;  // sent and not acknowledged
  std::uint32_t begun = 0;      // ever
  std::uint32_t expected = 0;   // by the target
  std::uint64_t last_delivered_ps = 0;
  // With faults only, by sequence: what has to be sent again, and whether a time-out is awaited for all of it.
  std::map<std::uint32_t, std::uint32_t> waiting;
  bool armed = false;
  std::uint32_t sent = 0;  // ever, by sequence
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
    transfer.source_memory = asked.source_memory;
    transfer.target_memory = asked.target_memory;
    transfer.traffic_class = traffic_class;
    if (!asked.ordered) return index;
    transfer.line = line_of(fabric::flow_name(asked, traffic_class));
    Line& line = lines_[transfer.line];
    ++line.transfers;
    transfer.sequence = line.begun++;
    return index;
  }
  // Behind all of its line.
  void append_to_line(std::uint32_t index) {
    Line& line = lines_[transfers_[index].line];
    link_in_line(line, line.last_unsent, index);
  }
  // Where its sequence has it, but behind what is being sent.
  void put_back_in_line(std::uint32_t index) {
    Line& line = lines_[transfers_[index].line];
    std::uint32_t before = none;
    std::uint32_t behind = line.first_unsent;
    while (behind != none &&
           ((before == none && line.sending) || transfers_[behind].sequence < transfers_[index].sequence)) {
      before = behind;
      behind = transfers_[behind].next_in_line;
    }
    link_in_line(line, before, index);
  }
  // The transfer of the line that is to be sent now; none, where one is being sent, or all have been.
  std::uint32_t take_first_of(std::uint32_t number) {
    Line& line = lines_[number];
    if (line.sending || line.first_unsent == none) return none;
    line.sending = true;
    return line.first_unsent;
  }
  // If it is the one of its line that was to be sent: it has been.
  void leave_line(std::uint32_t index) {
    Line& line = lines_[transfers_[index].line];
    if (!line.sending || line.first_unsent != index) return;
    line.first_unsent = std::exchange(transfers_[index].next_in_line, none);
    if (line.first_unsent == none) line.last_unsent = none;
    line.sending = false;
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
  void link_in_line(Line& line, std::uint32_t before, std::uint32_t index) {
    std::uint32_t& place = before == none ? line.first_unsent : transfers_[before].next_in_line;
    transfers_[index].next_in_line = std::exchange(place, index);
    if (line.last_unsent == before) line.last_unsent = index;
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
