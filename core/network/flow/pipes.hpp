// What transfers go through, each with what flows have of it now and what of short transfers waits for it. A pipe is a
// link, named by the port that drives it, or the links between two switches of a group together, named by the first of
// their ports.
//
// Amounts are times: what a link at its full rate is busy with. A capacity is in links, less where some have lanes out
// or replays. How long something waits for a pipe is a closed form: of flows that leave room M/D/1's mean, no more than
// what is settled at a pipe that is full (docs/model/flows.md#queues); of short transfers what of them came before.
// From when transfers of a second traffic class come, each class has its own queue and part of a pipe (ClassAccounts).
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/wiring.hpp"
#include "core/network/flow/class_accounts.hpp"
#include "core/route/routing.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::flow {

struct Pipe {
  double capacity = 0;          // in links
  double share = 0;             // what flows have of it, in links
  double wanted = 0;            // what they would have if they were alone
  double shorts = 0;            // time of short transfers, forgotten by and by
  std::uint64_t shorts_ps = 0;  // when that was
  std::uint64_t free_ps = 0;    // when it has carried the short transfers that came
  std::uint32_t streams = 0;    // flows that cross it
  bool full = false;            // somebody has less for its sake
  bool between_switches = false;
};

// For how many packets one waits in the mean where they come at random and take that part of the time: M/D/1.
inline double random_packets(double used) { return used / (2 * (1 - used)); }

class Pipes final : public fabric::LoadView {
 public:
  Pipes(const Dragonfly& dragonfly, const fabric::FabricSpec& fabric, const fabric::Wiring& wiring,
        const Engine& engine, Duration settled_in_fabric);

  Pipe& operator[](std::uint32_t pipe) { return pipes_[pipe]; }
  const Pipe& operator[](std::uint32_t pipe) const { return pipes_[pipe]; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(pipes_.size()); }

  std::uint32_t egress(NicId nic) const { return wiring_.nic_port(nic); }
  std::uint32_t ingress(NicId nic) const { return wiring_.peer(wiring_.nic_port(nic)); }
  // The pipe that the link of a port belongs to.
  std::uint32_t of_port(std::uint32_t port) const { return port < leaders_.size() ? leaders_[port] : port; }
  // The link of this port has so much of a link from now on; its pipe changes with it.
  void set_capacity(std::uint32_t port, double capacity);
  // What short transfers leave to flows, and flows to short transfers.
  double for_flows(std::uint32_t pipe) const {
    return classes_ == nullptr ? for_flows(pipes_[pipe], pipes_[pipe].streams) : classes_->left(pipe);
  }
  // The same if no flow crossed it: the more do, the less of it short transfers can have.
  double least_for_flows(std::uint32_t pipe) const {
    return classes_ == nullptr ? for_flows(pipes_[pipe], 0) : classes_->left(pipe);
  }
  // They leave nearly all of it.
  bool is_for_flows(std::uint32_t pipe) const;
  // After which they may leave more.
  static constexpr double look_again_ps = 10'000'000;
  // What part of short transfers is remembered after that time: nearly exp(-t), and less to compute.
  static double remembered(double since_ps) {
    const double t = since_ps / look_again_ps;
    return 1 / (1 + t + t * t / 2);
  }

  // A transfer of this class has been submitted.
  void meet(std::uint32_t traffic_class);
  // Null as long as all that was submitted is of one class.
  ClassAccounts* classes() const { return classes_.get(); }
  // A short transfer of the class takes this pipe for that time; returns for how long it waits.
  std::uint64_t pass(std::uint32_t pipe, std::uint32_t traffic_class, std::uint64_t transmission_ps) {
    const std::uint64_t wait = wait_ps(pipe, traffic_class);
    if (classes_ == nullptr) {
      come(pipes_[pipe], transmission_ps);
    } else {
      classes_->come(pipe, traffic_class, transmission_ps);
    }
    return wait;
  }
  // For how long what comes now waits for the short ones of its class, and for all: of the flows that cross the pipe so
  // many are its own.
  std::uint64_t backlog_ps(std::uint32_t pipe, std::uint32_t traffic_class) const {
    return classes_ == nullptr ? backlog_ps(pipes_[pipe]) : classes_->wait_ps(pipe, traffic_class);
  }
  std::uint64_t wait_ps(std::uint32_t pipe, std::uint32_t traffic_class, std::uint32_t own = 0) const {
    std::uint64_t among_ps = among_flows_ps(pipe, own);
    if (classes_ == nullptr) return backlog_ps(pipes_[pipe]) + among_ps;
    if (among_ps > 0) among_ps = std::min(among_ps, classes_->among_streams_ps(pipe, traffic_class));
    return classes_->wait_ps(pipe, traffic_class) + among_ps;
  }

  // LoadView: switches know all loads as they are.
  std::uint64_t own_ps(std::uint32_t port) const override { return load_ps(of_port(port)); }
  std::uint64_t other_ps(std::uint32_t port) const override { return load_ps(of_port(port)); }

 private:
  std::uint64_t now_ps() const { return engine_.now().ps; }
  std::uint64_t backlog_ps(const Pipe& pipe) const { return pipe.free_ps > now_ps() ? pipe.free_ps - now_ps() : 0; }
  std::uint64_t load_ps(std::uint32_t pipe) const {
    return (classes_ == nullptr ? backlog_ps(pipes_[pipe]) : classes_->all_ps(pipe)) + among_flows_ps(pipe, 0);
  }
  std::uint64_t among_flows_ps(std::uint32_t pipe, std::uint32_t own) const {
    const bool any = pipes_[pipe].share > 0 && pipes_[pipe].streams > own;
    return any ? wait_among_flows_ps(pipe, own) : 0;
  }
  std::uint64_t wait_among_flows_ps(std::uint32_t pipe, std::uint32_t own) const;
  void come(Pipe& pipe, std::uint64_t transmission_ps);
  double for_flows(const Pipe& pipe, std::uint32_t streams) const;
  void connect(const Dragonfly& dragonfly);

  const fabric::Wiring& wiring_;
  const Engine& engine_;
  const fabric::FabricSpec& fabric_;
  double frame_ps_;
  double settled_in_fabric_ps_;
  double settled_at_nic_ps_;
  std::vector<Pipe> pipes_;
  std::vector<std::uint32_t> leaders_;  // of ports of switches
  std::vector<double> capacity_of_port_;
  std::uint32_t first_class_ = fabric::no_class;
  std::unique_ptr<ClassAccounts> classes_;  // none as long as there is but one
};

}  // namespace dryfly::flow
