// What the switches of the packet network tell a routing algorithm of the load of their ports.
#pragma once

#include <cstdint>

#include "core/network/packet/links.hpp"
#include "core/route/routing.hpp"

namespace dryfly::fabric {

class LinkLoads final : public LoadView {
 public:
  explicit LinkLoads(const Links& links) : links_(links) {}
  std::uint64_t own_ps(std::uint32_t port) const override { return links_.queued_ps(links_[port]); }
  std::uint64_t other_ps(std::uint32_t port) const override { return links_.told_ps(port); }

 private:
  const Links& links_;
};

}  // namespace dryfly::fabric
