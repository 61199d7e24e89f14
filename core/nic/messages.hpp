// Two-sided messages: protocol choice, matching at the target end-point, rendezvous, multi-receive, peek and claim.
// Models sections C2 and A7 of the fact sheet with hardware matching: after a match the target NIC itself asks the
// source NIC for the rest of a rendezvous payload (Get), places it, and tells the source NIC that it is done; no
// CPU takes part. Left out: software and hybrid matching, the sizes of the overflow and request buffers, and the
// other rendezvous protocols (alt_read, alt_write).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/nic/matching.hpp"
#include "core/nic/nic.hpp"
#include "core/nic/pool.hpp"
#include "core/nic/transport.hpp"

namespace dryfly::nic {

class Messages {
 public:
  Messages(Transport& transport, Host& host, const NicSpec& spec, NicTotals& totals);

  void open(EndpointId endpoint);
  void close(EndpointId endpoint);

  void send(const SendCommand& command);
  void receive(const ReceiveCommand& command);
  void peek(const PeekCommand& command);
  void receive_claimed(const ReceiveCommand& command, Token claim);
  void cancel(EndpointId at, Token receive);

  void arrived(Parcel parcel, std::uint32_t switch_hops);
  Landing landing_of(Parcel parcel) const;
  void acknowledged(Parcel parcel);
  void failed(Parcel parcel, bool delivered);

  void restart() { messages_.restart(); }
  bool at_rest() const { return messages_.in_use() == 0; }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  struct Message {
    SendCommand command;
    Protocol protocol = Protocol::eager;
    bool on_node = false;
    bool over = false;         // nothing follows but acknowledgements
    bool source_told = false;  // on-node: sent() has been reported
    std::uint32_t unacknowledged = 0;
    std::uint32_t switch_hops = 0;
    std::uint32_t receive = none;  // once matched
    Bytes offset;                  // in the buffer of that receive
  };
  // A posted receive, or one that has matched and whose messages are still being placed.
  struct Receive {
    ReceiveCommand command;
    std::uint32_t life = 0;  // of the end-point, when it was posted
    std::uint32_t slot = none;
    std::uint32_t in_progress = 0;
    Bytes used;
    bool posted = false;
    bool matched = false;
  };
  struct Inbox {
    bool open = false;
    std::uint32_t life = 0;  // how many times it has been opened
    PostedReceives posted;
    UnexpectedMessages unexpected;
    std::map<Token, std::uint32_t> claimed;
  };

  Inbox& inbox(EndpointId endpoint);
  std::uint32_t new_receive(const ReceiveCommand& command, const Inbox& at);
  void unpost(Inbox& at, std::uint32_t receive);
  // One message less in progress; true when this was the last one that a multi-receive buffer takes.
  bool settle(std::uint32_t receive);
  void request_arrived(std::uint32_t message, std::uint32_t switch_hops);
  void match(Inbox& at, std::uint32_t receive, std::uint32_t message);
  // The same for a message that had to wait.
  void match_unexpected(Inbox& at, std::uint32_t receive, std::uint32_t message);
  void count_match(const Message& message, bool expected);
  void get(std::uint32_t message);
  void answer_get(std::uint32_t message);
  void placed(std::uint32_t message);
  void drop(std::uint32_t message);
  Received report_of(const Message& message) const;
  // Nothing more will come: the target's receive, if it has matched, and the source are told so.
  void break_off(std::uint32_t message);
  // The payload is placed or dropped. True when the source is to be told now.
  bool finish(std::uint32_t message);
  void end(std::uint32_t message);
  void retire_if_idle(std::uint32_t message);

  Journey to_target(const Message& message, Bytes size, bool ordered) const;
  Journey to_source(const Message& message) const;
  void note_list_entries(const Inbox& at);

  Transport& transport_;
  Host& host_;
  const NicSpec& spec_;
  NicTotals& totals_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;  // by end-point
  Pool<Message> messages_;
  Pool<Receive> receives_;
};

}  // namespace dryfly::nic
