#include "core/network/flow/pipes.hpp"

#include <algorithm>

namespace dryfly::flow {
namespace {

constexpr double nearly_full = 0.98;
constexpr double nearly_all = 0.99;

// What a NIC that is sent more than it can take has in the queue before it: half of what makes it hot, as the packet
// model's holds settle (docs/model/congestion.md#constants); without holds what the last buffer takes.
double settled_at_nic(const fabric::FabricSpec& fabric) {
  const Bytes queued = fabric.congestion_management ? Bytes{fabric.hot_queue.count / 2} : fabric.input_buffer;
  return static_cast<double>(transmission_time(queued, fabric.rate).ps);
}

// A NIC takes turns among flows; at a link between switches those packets go first that came first, whosesoever they
// are, and half of it is as much as short transfers are taken to bring.
double turn(const Pipe& pipe, std::uint32_t streams) {
  return pipe.capacity / (pipe.between_switches ? 2.0 : 1.0 + streams);
}

// What short transfers can have beside flows.
double for_shorts(const Pipe& pipe) { return std::max({pipe.capacity - pipe.share, turn(pipe, pipe.streams), 1e-3}); }

double shorts_rate(const Pipe& pipe, std::uint64_t now_ps) {
  if (pipe.shorts == 0) return 0;
  const auto since = static_cast<double>(now_ps - pipe.shorts_ps);
  return pipe.shorts * Pipes::remembered(since) / Pipes::look_again_ps;
}

}  // namespace

Pipes::Pipes(const Dragonfly& dragonfly, const fabric::FabricSpec& fabric, const fabric::Wiring& wiring,
             const Engine& engine, Duration settled_in_fabric)
    : wiring_(wiring),
      engine_(engine),
      fabric_(fabric),
      frame_ps_(static_cast<double>(transmission_time(fabric.frame_max(), fabric.rate).ps)),
      settled_in_fabric_ps_(static_cast<double>(settled_in_fabric.ps)),
      settled_at_nic_ps_(settled_at_nic(fabric)),
      pipes_(wiring.count()),
      capacity_of_port_(wiring.count(), 1) {
  connect(dragonfly);
}

void Pipes::connect(const Dragonfly& dragonfly) {
  leaders_.resize(dragonfly.port_count());
  for (std::uint32_t nic = 0; nic < dragonfly.nic_count(); ++nic) pipes_[egress({nic})].capacity = 1;
  for (std::uint32_t at = 0; at < dragonfly.switch_count(); ++at) {
    const std::uint32_t first = dragonfly.first_port({at});
    const std::uint32_t parallel = dragonfly.local_links_in(dragonfly.group_of({at}));
    for (std::uint32_t index = 0; index < dragonfly.ports_of({at}); ++index) {
      const Peer::Kind kind = dragonfly.peer({at}, index).kind;
      const std::uint32_t port = first + index;
      leaders_[port] = kind == Peer::Kind::local_switch ? port - index % parallel : port;
      pipes_[leaders_[port]].between_switches = kind != Peer::Kind::nic;
      pipes_[leaders_[port]].capacity += 1;
    }
  }
}

void Pipes::set_capacity(std::uint32_t port, double capacity) {
  const double change = capacity - capacity_of_port_[port];
  capacity_of_port_[port] = capacity;
  Pipe& pipe = pipes_[of_port(port)];
  pipe.capacity = std::max(0.0, pipe.capacity + change);
}

double Pipes::for_flows(const Pipe& pipe, std::uint32_t streams) const {
  return pipe.capacity - std::min(shorts_rate(pipe, now_ps()), turn(pipe, streams));
}

bool Pipes::is_for_flows(std::uint32_t number) const {
  return for_flows(number) >= nearly_all * pipes_[number].capacity;
}

void Pipes::meet(std::uint32_t traffic_class) {
  if (traffic_class == first_class_ || classes_ != nullptr) return;
  if (first_class_ == fabric::no_class) {
    first_class_ = traffic_class;
    return;
  }
  classes_ = std::make_unique<ClassAccounts>(fabric_, pipes_, engine_, static_cast<std::uint32_t>(leaders_.size()),
                                             first_class_);
}

void Pipes::come(Pipe& pipe, std::uint64_t transmission_ps) {
  const auto time = static_cast<double>(transmission_ps);
  const auto since = static_cast<double>(now_ps() - pipe.shorts_ps);
  pipe.shorts = pipe.shorts * remembered(since) + time;
  pipe.shorts_ps = now_ps();
  pipe.free_ps = std::max(pipe.free_ps, now_ps()) + static_cast<std::uint64_t>(time / for_shorts(pipe));
}

// Of other flows each has a packet before it at most, as they take turns, but where they come from more than one side
// and what waits is more.
std::uint64_t Pipes::wait_among_flows_ps(std::uint32_t number, std::uint32_t own) const {
  const Pipe& pipe = pipes_[number];
  const double others = pipe.streams - own;
  const double used = std::min(1.0, pipe.share / pipe.capacity);
  if (number >= leaders_.size()) return static_cast<std::uint64_t>(used * std::min(others, pipe.wanted) * frame_ps_);
  const double settled = pipe.between_switches ? settled_in_fabric_ps_ : settled_at_nic_ps_;
  if (pipe.full && used >= nearly_full) return static_cast<std::uint64_t>(settled);
  const double random = used < 1 ? random_packets(used) * frame_ps_ : settled;
  return static_cast<std::uint64_t>(std::min({random, settled, others * frame_ps_}));
}

}  // namespace dryfly::flow
