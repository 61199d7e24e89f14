// Sends and receives, tagged and untagged: what msg.cpp and tagged.cpp, which only spell the API's many forms of
// them, have in common. Protocol choice, matching and everything about time belong to the simulator.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "provider/ep.hpp"

namespace dryfly::provider {

struct SendCall {
  const void* buffer = nullptr;
  std::size_t length = 0;
  fi_addr_t target = FI_ADDR_UNSPEC;
  bool tagged = false;
  std::uint64_t tag = 0;
  bool has_data = false;
  std::uint64_t data = 0;
  std::uint64_t flags = 0;
  void* context = nullptr;
  bool inject = false;  // one of the inject calls: no completion entry
};

struct ReceiveCall {
  void* buffer = nullptr;
  std::size_t length = 0;
  fi_addr_t source = FI_ADDR_UNSPEC;
  bool tagged = false;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;
  std::uint64_t flags = 0;
  void* context = nullptr;
};

ssize_t send(Endpoint& endpoint, const SendCall& call);
// Posts a buffer, or with FI_PEEK looks at what has arrived unexpected, or with FI_CLAIM takes what a peek claimed.
ssize_t receive(Endpoint& endpoint, const ReceiveCall& call);

// The one buffer of a vector of at most one; false for a longer one.
inline bool single(const iovec* parts, std::size_t count, void*& buffer, std::size_t& length) {
  if (count > 1) return false;
  buffer = count == 1 ? parts->iov_base : nullptr;
  length = count == 1 ? parts->iov_len : 0;
  return true;
}

}  // namespace dryfly::provider
