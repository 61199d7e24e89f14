// The links by which the NICs of a node reach the memory of its GPUs, each way by itself. Models
// docs/model/gpu.md#nics-and-the-link-of-a-gpu: NICs that hang off the processor share the one between it and a GPU,
// which its tiles share, too; a NIC that hangs off a GPU reads and writes that one's memory as it likes, and another's
// by the links of the pair. A GPU that is slow (docs/model/reliability.md#parts-of-nodes) gives each no more than is
// left of its link to the processor. Left out: that pairs which have no link of their own share those of the way over
// others; copies of the GPU's runtime and what the processor's memory carries.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "core/nic/nic.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

class GpuLinks {
 public:
  static constexpr std::uint32_t none = 0;

  explicit GpuLinks(const NicSpec& spec) : spec_(spec) {}

  bool any() const { return spec_.gpu_link.bytes_per_s != 0; }
  // One more NIC of the node will use the link, whose number this is. `nic_gpu` as MemoryPlace has it. None: it has
  // what it wants.
  std::uint32_t join(NodeId node, std::uint8_t nic_gpu, std::uint8_t gpu);
  // When the link has carried that too, which begins no sooner than at that instant.
  Instant read(std::uint32_t link, Bytes size, Instant begin);
  Instant write(std::uint32_t link, Bytes size, Instant begin);
  // The same of what is known only now, and may have come among others from `earliest` on: what fits into the time in
  // which the link was idle before it began with those has been written then.
  Instant write_late(std::uint32_t link, Bytes size, Instant begin, Instant earliest);
  // Nobody waits before these.
  Instant readable_at(std::uint32_t link) const { return links_[link].read_until; }
  Instant writable_at(std::uint32_t link) const { return links_[link].written_until; }
  // How far the NICs fetch ahead of it, as HostPaths has it of the bus.
  Duration ahead(std::uint32_t link) const { return links_[link].ahead; }

 private:
  struct Link {
    Rate rate;
    Duration full_packet;
    Duration ahead;
    std::uint64_t nics = 0;
    Instant read_until;  // when it has carried all that it was given
    Instant written_until;
    Instant idle_from;  // before it began with what it has written without a pause
    Instant busy_from;
  };
  Duration time_of(const Link& link, Bytes size) const;

  const NicSpec& spec_;
  std::vector<Link> links_{1};                                                          // the first stands for none
  std::map<std::tuple<NodeId, std::uint8_t, std::uint32_t>, std::uint32_t> number_of_;  // by NIC's GPU and GPU
};

}  // namespace dryfly::nic
