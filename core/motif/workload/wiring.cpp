// What is plugged where, as a file, for those who plan what to measure (`dryfly validate`); no message is sent.
//
//   out=PATH    lines `nic N NODE SWITCH`, `switch S GROUP` and `cable S T K`, the K-th between two switches
#include <fstream>
#include <map>
#include <utility>

#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {

Answer predict_wiring(Stage& stage, Parameters& parameters) {
  const std::string out = parameters.text("out");
  parameters.check_all_used();
  const Dragonfly& topology = stage.placement().topology();
  std::ofstream file(out);
  for (std::uint32_t nic = 0; nic < topology.nic_count(); ++nic) {
    file << "nic " << nic << ' ' << topology.node_of({nic}).value << ' ' << topology.switch_of({nic}).value << '\n';
  }
  for (std::uint32_t at = 0; at < topology.switch_count(); ++at) {
    file << "switch " << at << ' ' << topology.group_of({at}).value << '\n';
  }
  for (std::uint32_t at = 0; at < topology.switch_count(); ++at) {
    std::map<std::uint32_t, std::uint32_t> parallel;
    for (std::uint32_t port = 0; port < topology.ports_of({at}); ++port) {
      const Peer& peer = topology.peer({at}, port);
      const bool is_switch = peer.kind == Peer::Kind::local_switch || peer.kind == Peer::Kind::global_switch;
      if (!is_switch || peer.id < at) continue;
      file << "cable " << at << ' ' << peer.id << ' ' << parallel[peer.id]++ << '\n';
    }
  }
  if (!file.flush()) throw SpecError("out = " + out + ": cannot be written");
  return {};
}

}  // namespace dryfly::motif
