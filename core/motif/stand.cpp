#include "core/motif/stand.hpp"

#include "core/nic/nic_spec.hpp"

namespace dryfly::generator {

Stand::Stand(const Spec& spec)
    : spec_(spec),
      machine_(spec),
      host_(machine_.engine, nics_, HostLatencies::read(spec)),
      nics_(machine_.engine, machine_.carrier(), host_, nic_spec(spec)),
      nic_sockets_(nic_sockets(spec)) {}

EndpointId Stand::open(NicId nic) {
  // Who gives the commands is on the NIC's own socket.
  const std::uint32_t index = machine_.topology.index_in_node(nic);
  const std::uint32_t socket = index < nic_sockets_.size() ? nic_sockets_[index] : 0;
  return host_.open(nic, machine_.topology.node_of(nic), {.socket = socket, .nic_socket = socket});
}

}  // namespace dryfly::generator
