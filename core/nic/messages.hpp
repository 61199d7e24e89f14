// Two-sided messages as their end-points see them: protocol choice, matching at the target end-point, rendezvous,
// multi-receive, peek and claim. Where the hardware matches, the target NIC itself asks the source NIC for the rest of
// a rendezvous payload (Get), places it, and tells the source NIC that it is done; no CPU takes part. Where software
// matches, the target's CPU asks for the rest when it gets to the request (SoftwareGets). A portal that has no room
// refuses what comes until its CPU has made some (FlowControl), or makes it wait (Pauses). Completion tells both ends
// how it ended.
// What goes by a node's memory uses no list entries and is never refused; its target copies what has come in a segment.
// Left out: copying out of overflow and request buffers takes no time.
#pragma once

#include <cstdint>

#include "core/nic/completion.hpp"
#include "core/nic/flow_control.hpp"
#include "core/nic/inboxes.hpp"
#include "core/nic/message.hpp"
#include "core/nic/nic.hpp"
#include "core/nic/outbox.hpp"
#include "core/nic/pauses.hpp"
#include "core/nic/software_gets.hpp"
#include "core/nic/transport.hpp"

namespace dryfly::nic {

class Messages {
 public:
  Messages(Transport& transport, Host& host, const NicSpec& spec, NicTotals& totals);

  void open(EndpointId endpoint, NicId nic, const EndpointSettings& settings);
  void close(EndpointId endpoint);

  void send(const SendCommand& command);
  void receive(const ReceiveCommand& command);
  void peek(const PeekCommand& command);
  void receive_claimed(const ReceiveCommand& command, Token claim);
  void cancel(EndpointId at, Token receive);

  void worked(EndpointId at, const Work& work);
  void arrived(Parcel parcel, std::uint32_t switch_hops);
  Landing landing_of(Parcel parcel) const;
  void acknowledged(Parcel parcel) { completion_.acknowledged(parcel); }
  void failed(Parcel parcel, bool delivered) { completion_.failed(parcel, delivered); }
  // As Recipient::soon.
  void soon(Parcel parcel, unsigned stage) const;

  bool is_got_by_software(std::uint32_t message) const {
    return messages_[message].state == MessageState::getting_by_software;
  }
  void restart();
  bool at_rest() const { return messages_.in_use() == 0; }

 private:
  void request_arrived(std::uint32_t message, std::uint32_t switch_hops);
  Duration write_head(const Message& message);
  DmaPages pages_of(const Message& message, Bytes from) const;
  void ask_for_copy_of_head(const Message& message);
  void copy_out(std::uint32_t index);
  void add_unexpected(Inbox& target, std::uint32_t message);
  void match(Inbox& at, std::uint32_t receive, std::uint32_t message);
  void match_expected(Inbox& at, std::uint32_t receive, std::uint32_t message);
  // The same for a message that had to wait.
  void match_unexpected(Inbox& at, std::uint32_t receive, std::uint32_t message);
  // Tells a peek that waits of a message that nobody has matched.
  void answer_waiting(Inbox& at);
  void answer(Inbox& at, const PeekCommand& command, std::uint32_t message);
  void count_match(const Message& message, bool expected);
  // Messages that were paused at the NIC come again; they may have to wait for more.
  void go_on(NicId nic);

  Transport& transport_;
  Host& host_;
  NicTotals& totals_;
  std::uint64_t sends_ = 0;
  MessageTable messages_;
  Inboxes inboxes_;
  Outbox outbox_;
  FlowControl flow_control_;
  Pauses pauses_;
  SoftwareGets software_gets_;
  Completion completion_;
};

}  // namespace dryfly::nic
