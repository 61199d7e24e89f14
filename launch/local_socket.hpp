// The abstract Unix socket between dryfly-launch and the shims of its ranks: it has no file that could stay behind.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "core/unit/check.hpp"

namespace dryfly::launch {

struct LocalAddress {
  explicit LocalAddress(const std::string& name)
      : bytes(static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())) {
    DRYFLY_CHECK(name.size() < sizeof address.sun_path - 1);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t bytes;
};

}  // namespace dryfly::launch
