// Two-sided messages: protocol choice, matching at the target end-point, rendezvous, multi-receive, peek and claim.
// Models sections C2, C4 and A7 of the fact sheet. Where the hardware matches, the target NIC itself asks the source
// NIC for the rest of a rendezvous payload (Get), places it, and tells the source NIC that it is done; no CPU takes
// part. Where software matches, the target's CPU asks for the rest when it gets to the request. A portal that has no
// room refuses what comes until its CPU has made some (portal.hpp; flow_control.cpp has what the two sides then do).
// On-node messages stand for the library's shared memory: they use no list entries and are never refused. Left out:
// copying out of overflow and request buffers takes no time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/nic/matching.hpp"
#include "core/nic/nic.hpp"
#include "core/nic/pool.hpp"
#include "core/nic/portal.hpp"
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
  void acknowledged(Parcel parcel);
  void failed(Parcel parcel, bool delivered);
  // As Recipient::soon.
  void soon(Parcel parcel, unsigned stage) const;

  void restart();
  bool at_rest() const { return messages_.in_use() == 0; }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  struct Message {
    SendCommand command;
    Protocol protocol = Protocol::eager;
    bool on_node = false;
    bool over = false;              // nothing follows but acknowledgements
    bool source_told = false;       // on-node: sent() has been reported
    bool holds_entry = false;       // an unexpected header on the hardware's list
    bool in_software = false;       // came by the request list
    bool onloaded = false;          // its header was taken to the host
    bool awaits_processor = false;  // a rendezvous request that the target's CPU has not seen yet
    bool unexpected = false;        // had to wait for its receive
    bool listed = false;            // among the unexpected ones, and counted there
    bool refused = false;           // dropped by a disabled portal
    bool under_way = false;         // its source does not know yet whether it was taken or refused:
    bool arrived = false;           // that is decided
    bool answered = false;          // and the answer is back
    bool paused = false;            // waits for a buffer of its target, or behind one that does
    bool foreign = false;           // its target is on another virtual network
    bool notifies_done = false;     // a rendezvous whose Get by software is a restricted one
    bool holds_credit = false;      // one of its target's Gets by software
    bool told_done = false;         // and the target's CPU has said that it is done
    std::uint32_t unacknowledged = 0;
    std::uint32_t switch_hops = 0;
    std::uint32_t receive = none;                           // once matched
    std::uint32_t life = 0;                                 // which message it is that has this place
    std::uint64_t number = 0;                               // in the order of sending
    TrafficClass answer_class = TrafficClass::best_effort;  // of its Get, and what that brings
    Bytes head;                                             // of a rendezvous: what travels with the request
    Bytes offset;                                           // in the buffer of that receive
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
    bool holds_entry = false;  // is on the hardware's list
    bool waits = false;        // could not be appended to it yet
  };
  // What a source keeps of a target that has refused something.
  struct Peer {
    EndpointId source;
    EndpointId target;
    std::uint32_t life = 0;
    bool asked = false;    // its CPU knows, or will
    bool holding = false;  // new messages wait behind the refused ones
    bool noticed = false;  // the target has been told how many
    bool resumed = false;  // and has told the source to go on
    std::uint32_t under_way = 0;
    std::vector<std::uint32_t> refused;  // messages
    std::vector<std::uint32_t> held;
  };
  struct Inbox {
    bool open = false;
    std::uint32_t life = 0;  // how many times it has been opened
    NicId nic;
    Portal portal;
    Bytes eager_max;
    Bytes rendezvous_head;
    std::uint32_t posted_entries = 0;
    std::uint32_t unexpected_entries = 0;
    std::uint32_t in_software = 0;  // unexpected ones of the request list
    TrafficClass software_class = TrafficClass::best_effort;
    bool notifies_done = false;
    std::uint32_t gets_max = 0;
    std::uint32_t gets_under_way = 0;  // by software
    std::deque<std::uint32_t> gets_waiting;
    std::uint32_t control_slots = 0;
    std::uint32_t control_used = 0;
    std::vector<std::uint32_t> told_drops;  // peers that wait for the portal
    PostedReceives posted;
    UnexpectedMessages unexpected;
    std::map<Token, std::uint32_t> claimed;
    std::deque<PeekCommand> waiting;  // peeks, in the order in which they are answered
  };

  Inbox& inbox(EndpointId endpoint);
  std::uint32_t new_receive(const ReceiveCommand& command, const Inbox& at);
  void unpost(Inbox& at, std::uint32_t receive);
  // One message less in progress; true when this was the last one that a multi-receive buffer takes.
  bool settle(std::uint32_t receive);
  void request_arrived(std::uint32_t message, std::uint32_t switch_hops);
  void add_unexpected(Inbox& target, std::uint32_t message);
  void match(Inbox& at, std::uint32_t receive, std::uint32_t message);
  // Tells a peek that waits of a message that nobody has matched.
  void answer_waiting(Inbox& at);
  void answer(Inbox& at, const PeekCommand& command, std::uint32_t message);
  // The same for a message that had to wait.
  void match_unexpected(Inbox& at, std::uint32_t receive, std::uint32_t message);
  void count_match(const Message& message, bool expected);
  void get(std::uint32_t message);
  void answer_get(std::uint32_t message);
  // Whether the acknowledgement completes the send at its source, and telling it so once.
  bool complete_by_acknowledgement(const Message& message) const;
  void tell_source_once(std::uint32_t message);
  // A receive has taken a message that was unexpected: who asked for match completion waits for a notice of the
  // target's CPU.
  void owe_notice(std::uint32_t message);
  void notice_lost(std::uint32_t message);
  void placed(std::uint32_t message);
  void deliver(std::uint32_t message);
  bool hears_of(const Message& message);
  void turned_away(std::uint32_t message);
  bool waits_in_line(std::uint32_t message);
  void pause(std::uint32_t message);
  void go_on(NicId nic);
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
  void note_list_entries(Inbox& at);
  void launch(std::uint32_t message);
  void append(Inbox& at, std::uint32_t receive);
  void leave_list(Message& message);

  // software_gets.cpp
  bool got_by_processor(const Message& message) const;
  void ask_for_get(std::uint32_t message);
  void software_get(std::uint32_t message);
  void return_credit(Message& message);
  void tell_done(std::uint32_t message);
  void done_acknowledged(std::uint32_t message);
  void abandon_gets(EndpointId endpoint);

  void ask_processor(EndpointId endpoint, const Work& work) { host_.needs_processor(endpoint, work); }
  void ask_processor(EndpointId endpoint);

  // flow_control.cpp
  void refuse(std::uint32_t message);
  void onload(EndpointId endpoint);
  void enable(EndpointId endpoint);
  void notice(std::uint32_t peer);
  void resume(std::uint32_t peer);
  bool takes_control(EndpointId endpoint, std::uint32_t peer);
  void tell_again(std::uint32_t peer);
  bool held_back(std::uint32_t message);
  void settle_request(std::uint32_t message);
  void ask_to_hold(std::uint32_t peer);
  void hold(std::uint32_t peer);
  void replay(std::uint32_t peer);
  void peer_lost(std::uint32_t peer);
  void forget(std::uint32_t peer);
  std::uint32_t new_peer(const Message& message);

  Transport& transport_;
  Host& host_;
  const NicSpec& spec_;
  NicTotals& totals_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;                               // by end-point
  std::map<std::pair<std::uint32_t, std::uint32_t>, EntryPool> pools_;        // by NIC and engine
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> peer_of_;  // by source and target; in flow control
  Pool<Peer> peers_;
  std::map<std::pair<std::uint32_t, TrafficClass>, std::deque<std::uint32_t>> paused_;  // by NIC and class; lossless
  std::uint32_t lives_ = 0;
  std::uint64_t sends_ = 0;
  Pool<Message, 13> messages_;
  Pool<Receive, 13> receives_;
};

}  // namespace dryfly::nic
