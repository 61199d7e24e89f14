#include "core/motif/stand.hpp"

#include "core/nic/nic_spec.hpp"

namespace dryfly::generator {

Stand::Stand(const Spec& spec)
    : spec_(spec),
      topology_(spec),
      network_(engine_, topology_, spec),
      host_(engine_, nics_, HostLatencies::read(spec)),
      nics_(engine_, network_, host_, nic_spec(spec)),
      nic_sockets_(nic_sockets(spec)) {}

EndpointId Stand::open(NicId nic) {
  // Who gives the commands is on the NIC's own socket.
  const std::uint32_t index = topology_.index_in_node(nic);
  const std::uint32_t socket = index < nic_sockets_.size() ? nic_sockets_[index] : 0;
  return host_.open(nic, topology_.node_of(nic), {.socket = socket, .nic_socket = socket});
}

}  // namespace dryfly::generator
