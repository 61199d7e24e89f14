#include "conductor/tally.hpp"

namespace dryfly {

namespace {

RankId rank_of(EndpointId endpoint) { return RankId{wire::address_rank(endpoint.value)}; }

Protocol protocol_of(RmaKind kind) {
  if (kind == RmaKind::write) return Protocol::put;
  return kind == RmaKind::read ? Protocol::get : Protocol::atomic;
}

}  // namespace

void Tally::start(Instant start) {
  start_ = start;
  counting_ = true;
}

void Tally::received(const Received& received) {
  count(received.source, received.at, received.size);
  if (recorder_ == nullptr) return;
  tell_recorder(received.source, received.at, received.send, received.protocol, received.on_node, received.switch_hops);
}

void Tally::accessed(const RmaCommand& access, bool on_node, std::uint32_t switch_hops) {
  sent(rank_of(access.source), access.size);
  count(access.source, access.target, access.size);
  if (recorder_ == nullptr) return;
  tell_recorder(access.source, access.target, access.token, protocol_of(access.kind), on_node, switch_hops);
}

void Tally::reduced(EndpointId root, RankId rank, Bytes size) {
  if (counting_) add(rank_of(root), rank, size);
}

void Tally::count(EndpointId source, EndpointId target, Bytes size) {
  if (!counting_) {
    ++before_start_;
    return;
  }
  ++totals_.messages;
  totals_.bytes += size.count;
  add(rank_of(source), rank_of(target), size);
}

void Tally::add(RankId source, RankId target, Bytes size) {
  fingerprint_.add(Instant{engine_.now().ps - start_.ps}, source, target, size);
}

void Tally::tell_recorder(EndpointId source, EndpointId target, Token token, Protocol protocol, bool on_node,
                          std::uint32_t switch_hops) {
  const wire::Command& command = commands_[token].command;
  recorder_->message({.called_ps = command.at_ps,
                      .delivered_ps = engine_.now().ps,
                      .bytes = command.length,
                      .source_rank = rank_of(source).value,
                      .target_rank = rank_of(target).value,
                      .protocol = static_cast<std::uint8_t>(protocol),
                      .switch_hops = static_cast<std::uint8_t>(switch_hops),
                      .on_node = static_cast<std::uint8_t>(on_node ? 1 : 0)});
}

}  // namespace dryfly
