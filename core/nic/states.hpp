// The states of a message: where it stands at its target, and what its source knows of it. The two are machines of
// their own, because neither end sees the other: an acknowledgement can be back before the message has passed its
// target's ingress stage, and a message can be placed while its acknowledgement is still on its way. Each table has
// every change that is legal; docs/model/nic-protocols.md shows them, generated from here. libfabric's cxi provider
// keeps such states for an end-point (cxip_rxc_state), which are the Portal's here.
#pragma once

#include <cstdint>

#include "core/unit/state_machine.hpp"

namespace dryfly::nic {

// At its target. "By software" is the target's CPU.
enum class MessageState : std::uint8_t {
  coming,
  arrived,
  turned_away,
  refused,
  paused,
  unexpected,
  unexpected_asked,
  placing,
  getting,
  asked,
  queued,
  granted,
  getting_by_software,
  telling,
  told,
  closing,
  over
};

namespace states {
using S = MessageState;
inline constexpr StateRow<S> of_message[] = {
    {S::coming, "coming", "It is on its way to its target, or has not left its source yet.",
     any_of(S::arrived, S::over)},
    {S::arrived, "arrived", "It is at its target's NIC, which decides at this instant what becomes of it.",
     any_of(S::turned_away, S::refused, S::paused, S::unexpected, S::placing, S::getting, S::asked, S::closing,
            S::over)},
    {S::turned_away, "turned away", "Its target is on another virtual network; its source has yet to hear of it.",
     any_of(S::over)},
    {S::refused, "refused", "A disabled portal has dropped it, and its source will send it again.",
     any_of(S::coming, S::over)},
    {S::paused, "paused", "It waits at its target's NIC for a buffer, or behind a message that does.",
     any_of(S::arrived)},
    {S::unexpected, "unexpected", "It is on the list of unexpected messages, or claimed by a peek.",
     any_of(S::unexpected_asked, S::placing, S::getting, S::asked, S::queued, S::getting_by_software, S::closing,
            S::over)},
    {S::unexpected_asked, "unexpected asked", "The same, and software has been asked to look at its request.",
     any_of(S::unexpected, S::asked, S::closing)},
    {S::placing, "placing", "It has its receive, and all of its payload is being placed there.", any_of(S::over)},
    {S::getting, "getting", "The target's NIC, or by memory its core, gets the rest of the payload.",
     any_of(S::closing, S::over)},
    {S::asked, "asked", "It has its receive, and software has been asked to get the rest.",
     any_of(S::queued, S::getting_by_software, S::closing)},
    {S::queued, "queued", "Software gets as many as it may, and this one waits for a credit.",
     any_of(S::granted, S::closing)},
    {S::granted, "granted", "It has a credit, and software has been asked to get the rest.",
     any_of(S::getting_by_software, S::closing)},
    {S::getting_by_software, "getting by software", "Software gets the rest of the payload; it holds a credit.",
     any_of(S::telling, S::closing, S::over)},
    {S::telling, "telling", "A restricted Get is complete, and software has been asked to tell the source so.",
     any_of(S::told, S::closing)},
    {S::told, "told", "Software's word to the source is under way, and both ends end with its acknowledgement.",
     any_of(S::over)},
    {S::closing, "closing", "A rendezvous is placed or dropped, and the done message of the target's NIC is under way.",
     any_of(S::over)},
    {S::over, "over", "Nothing follows but acknowledgements and notices.", 0},
};
}  // namespace states
inline constexpr StateTable message_states("a message", states::of_message);

// At its source.
enum class SourceState : std::uint8_t { unsent, in_memory, sent, told_early, answered, told };

namespace states {
using K = SourceState;
inline constexpr StateRow<K> of_source[] = {
    {K::unsent, "unsent", "It has just been given to the NIC, or flow control withholds it.",
     any_of(K::in_memory, K::sent, K::told)},
    {K::in_memory, "in memory", "It goes by the memory of its node, where nothing is acknowledged.", any_of(K::told)},
    {K::sent, "sent", "Its acknowledgement is not back: nobody at the source knows whether it was taken or refused.",
     any_of(K::answered, K::told_early)},
    {K::told_early, "told early", "The same, but the host has been told already how the send ended.", any_of(K::told)},
    {K::answered, "answered", "Its acknowledgement is back, or the network has given it up.", any_of(K::sent, K::told)},
    {K::told, "told", "The host has been told how the send ended, and no acknowledgement is to come.",
     any_of(K::told_early)},
};
}  // namespace states
inline constexpr StateTable source_states("a message's source", states::of_source);

// Of a target that has dropped something of a source, as flow control goes on between the two.
enum class PeerState : std::uint8_t { dropped, withholding, settled, noticed, resumed, over };

namespace states {
using P = PeerState;
inline constexpr StateRow<P> of_peer[] = {
    {P::dropped, "dropped", "The source has learnt of the first drop; its CPU has been asked to withhold what follows.",
     any_of(P::withholding, P::noticed)},
    {P::withholding, "withholding", "The CPU withholds; of what was sent before, some is still under way.",
     any_of(P::settled)},
    {P::settled, "settled", "Nothing is under way any more; the CPU has been asked to say how many were dropped.",
     any_of(P::noticed)},
    {P::noticed, "noticed", "The target is told how many were dropped.", any_of(P::resumed, P::over)},
    {P::resumed, "resumed", "The target tells the source to go on.", any_of(P::over)},
    {P::over, "over", "Everything has been sent again, or has failed.", 0},
};
}  // namespace states
inline constexpr StateTable peer_states("flow control", states::of_peer);

}  // namespace dryfly::nic
