// Flow control between the two ends. A disabled portal drops what comes; each answer tells its source so. The source's
// CPU withholds what it would send next. When nothing of it is under way to that target any more, it tells the target
// how much was dropped. Meanwhile the target's CPU has taken the unexpected headers into the host's memory (onload).
// When the drops of all sources add up to what the portal has dropped, it enables the portal and tells the sources,
// and they send again in order.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/nic/inboxes.hpp"
#include "core/nic/message.hpp"
#include "core/nic/outbox.hpp"
#include "core/nic/transport.hpp"

namespace dryfly::nic {

class FlowControl {
 public:
  FlowControl(Transport& transport, Host& host, NicTotals& totals, MessageTable& messages, Inboxes& inboxes,
              Outbox& outbox)
      : transport_(transport), host_(host), totals_(totals), messages_(messages), inboxes_(inboxes), outbox_(outbox) {}

  void open(EndpointId endpoint, const EndpointSettings& settings);

  // At the source: true if the new message waits behind refused ones.
  bool withholds(std::uint32_t message);
  // Told of each message whose fate is decided at the target and known at its source.
  void settle_request(std::uint32_t message);
  // At the target: the portal takes no message.
  void refuse(std::uint32_t message);
  void onload(EndpointId endpoint);
  // The end-point has closed: whoever waits for its portal may go on.
  void close(EndpointId endpoint);

  static bool has(WorkKind kind) {
    return kind == WorkKind::count_drops || kind == WorkKind::replay || kind == WorkKind::hold ||
           kind == WorkKind::tell_again;
  }
  // What the two providers tell each other (is_control), and the work that comes of it.
  void arrived(Parcel parcel);
  void worked(EndpointId endpoint, const Work& work);
  Landing landing_of(Parcel parcel) const;
  // The network has given up what the two had to tell each other: the messages that wait for it fail.
  void peer_lost(std::uint32_t peer);

 private:
  // What a source keeps of a target that has refused something.
  struct Peer {
    EndpointId source;
    EndpointId target;
    std::uint32_t life = 0;
    StateMachine<PeerState, peer_states> state;
    std::uint32_t under_way = 0;
    std::vector<std::uint32_t> refused;   // messages
    std::vector<std::uint32_t> withheld;  // those that wait behind them
  };

  // What an end-point's provider hears of flow control.
  struct Control {
    std::uint32_t slots = 0;  // of its event queue
    std::uint32_t used = 0;
    std::vector<std::uint32_t> told_drops;  // peers that wait for the portal
  };

  void enable(EndpointId endpoint);
  void resume_all(EndpointId endpoint);
  void say_notice(std::uint32_t peer);
  void resume(std::uint32_t peer);
  void say_resume(std::uint32_t peer);
  bool takes_control(EndpointId endpoint, std::uint32_t peer);
  void tell_again(std::uint32_t peer);
  void ask_to_withhold(std::uint32_t peer);
  void withhold(std::uint32_t peer);
  void replay(std::uint32_t peer);
  void forget(std::uint32_t peer);
  std::uint32_t new_peer(const Message& message);

  Transport& transport_;
  Host& host_;
  NicTotals& totals_;
  MessageTable& messages_;
  Inboxes& inboxes_;
  Outbox& outbox_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> peer_of_;  // by source and target
  Pool<Peer> peers_;
  std::vector<Control> control_;  // by end-point
};

}  // namespace dryfly::nic
