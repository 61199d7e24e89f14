// Who is told what, and when: how a message ends at its source and at its target. A send is complete by what it has
// asked for, libfabric's completion levels as the cxi provider keeps them. Match completion of a message that found no
// receive takes a notice of the target's CPU (cxip_notify_match); a rendezvous is complete in every sense with its done
// message. A message also ends when the network has given something up, or when its target is on another network.
#pragma once

#include <cstdint>

#include "core/nic/flow_control.hpp"
#include "core/nic/inboxes.hpp"
#include "core/nic/message.hpp"
#include "core/nic/software_gets.hpp"
#include "core/nic/transport.hpp"

namespace dryfly::nic {

class Completion {
 public:
  Completion(Transport& transport, Host& host, NicTotals& totals, MessageTable& messages, Inboxes& inboxes,
             SoftwareGets& software_gets, FlowControl& flow_control)
      : transport_(transport),
        host_(host),
        totals_(totals),
        messages_(messages),
        inboxes_(inboxes),
        software_gets_(software_gets),
        flow_control_(flow_control) {}

  // Whether the acknowledgement completes the send at its source, and telling it so once.
  bool complete_by_acknowledgement(const Message& message) const;
  void tell_source_once(std::uint32_t message);
  // A receive has taken a message that was unexpected: who asked for match completion waits for a notice of the
  // target's CPU.
  void owe_notice(std::uint32_t message);
  // The target's CPU has come to it.
  void give_notice(std::uint32_t message);
  void acknowledged(Parcel parcel);
  void failed(Parcel parcel, bool delivered);
  // The payload is where its receive wants it.
  void placed(std::uint32_t message);
  // A done message is at the source.
  void done_arrived(std::uint32_t message);
  void drop(std::uint32_t message);
  // C_RC_VNI_NOT_FOUND: to its target's NIC the message is of a network that is not there.
  void turned_away(std::uint32_t message);

 private:
  // The answer to a message for another network is back; its target may not have come to it yet.
  void told_of_turning_away(std::uint32_t message);
  void notice_lost(std::uint32_t message);
  void report(std::uint32_t message);
  void done_acknowledged(std::uint32_t message);
  Received report_of(const Message& message) const;
  // Nothing more will come: the target's receive, if it has matched, and the source are told so.
  void break_off(std::uint32_t message);
  // The payload is placed or dropped. True when the source is to be told now.
  bool finish(std::uint32_t message);

  bool on_node(const Message& message) const {
    return transport_.on_node(message.command.source, message.command.target);
  }

  Transport& transport_;
  Host& host_;
  NicTotals& totals_;
  MessageTable& messages_;
  Inboxes& inboxes_;
  SoftwareGets& software_gets_;
  FlowControl& flow_control_;
};

}  // namespace dryfly::nic
