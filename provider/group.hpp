// A group of end-points for reductions (fid_mc), and joining one. As in libfabric's cxi provider every member joins,
// one join of an end-point at a time; how it went is in the end-point's event queue (FI_JOIN_COMPLETE). The simulated
// machine's fabric manager needs neither address nor token.
#pragma once

#include <rdma/fi_collective.h>

#include <cstdint>

#include "provider/av_set.hpp"
#include "provider/ep.hpp"
#include "provider/process.hpp"

namespace dryfly::provider {

struct Group {
  fid_mc fid;
  Group* next;  // of the same end-point
  Endpoint* endpoint;
  AddressSet* set;
  fid_mc** given_to;
  void* context;         // of the join
  fi_addr_t own;         // what this member is called
  std::uint32_t number;  // of the run's
  std::uint32_t place;
  bool joined;
  std::uint64_t begun;  // reductions, ever
  std::uint64_t ended;
};

inline constexpr std::uint64_t reductions_at_once = 8;

int join_group(fid_ep* endpoint, const void* address, std::uint64_t flags, fid_mc** group, void* context);
// False if nobody is told of it.
bool accept_joined(const Session& session, const wire::Event& event);
// The group that goes by this address at the end-point, or nullptr.
Group* find_group(const Endpoint& endpoint, fi_addr_t address);
// A reduction of the end-point's group is over.
void count_reduction(const Endpoint& endpoint, std::uint64_t number);
// Its end-point closes.
void forget_groups(Endpoint& endpoint);

}  // namespace dryfly::provider
