#include "provider/group.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "provider/eq.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

constexpr std::uint64_t ps_per_us = 1'000'000;

void unlink_and_free(Group* group) {
  Group** place = &group->endpoint->groups;
  while (*place != group) place = &(*place)->next;
  *place = group->next;
  if (group->endpoint->joining == group) group->endpoint->joining = nullptr;
  --group->set->groups;
  free(group);
}

int close_group(fid* fid) {
  const Session session;
  auto* group = object_of<Group>(fid);
  if (session && group->joined) {
    auto command = group->endpoint->command(wire::CommandKind::leave_group);
    command.group = group->number;
    command.member = group->place;
    session.channel().push(command, nullptr);
  }
  unlink_and_free(group);
  return 0;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_group,
    .bind = unsupported,
    .control = unsupported,
    .ops_open = unsupported,
};

// The end-point's own place in the set; count where it is not in it, or where an address is not in the vector.
std::size_t own_place(const Endpoint& endpoint, const AddressSet& set, std::uint32_t own) {
  std::size_t found = set.count;
  for (std::size_t i = 0; i < set.count; ++i) {
    std::uint32_t address = 0;
    if (!endpoint.peer(set.members[i], address)) return set.count;
    if (address == own) found = i;
  }
  return found;
}

wire::GroupSettings settings_of(const Environment& environment) {
  wire::GroupSettings settings{};
  // The root arms the engines anew when half of their time is over.
  settings.arming_ps = environment.collective_timeout_us * ps_per_us / 2;
  settings.radix = static_cast<std::uint32_t>(std::min<std::uint64_t>(environment.join_radix, UINT32_MAX));
  settings.groups_max = static_cast<std::uint32_t>(std::min<std::uint64_t>(environment.groups_per_job, UINT32_MAX));
  return settings;
}

// The list goes in pieces that fit a record.
void push_list(const Session& session, const Group& group) {
  const AddressSet& set = *group.set;
  struct {
    wire::GroupSettings settings;
    std::uint32_t addresses[wire::join_piece_max];
  } payload{};
  static_assert(sizeof payload <= wire::inline_bytes_max);
  payload.settings = settings_of(session.state().environment);
  for (std::size_t begin = 0; begin < set.count; begin += wire::join_piece_max) {
    const std::size_t count = std::min<std::size_t>(set.count - begin, wire::join_piece_max);
    for (std::size_t i = 0; i < count; ++i) group.endpoint->peer(set.members[begin + i], payload.addresses[i]);
    auto command = group.endpoint->command(wire::CommandKind::join_group);
    command.flags |= wire::command_flag::payload_inline;
    command.context = reinterpret_cast<std::uint64_t>(&group);
    command.member_count = set.count;
    command.list_begin = begin;
    command.length = sizeof payload.settings + count * sizeof(std::uint32_t);
    session.channel().push(command, &payload);
  }
}

}  // namespace

int join_group(fid_ep* fid, const void* address, std::uint64_t, fid_mc** given_to, void* context) {
  const auto* wanted = static_cast<const fi_collective_addr*>(address);
  if (fid == nullptr || wanted == nullptr || wanted->set == nullptr || given_to == nullptr ||
      wanted->coll_addr != FI_ADDR_NOTAVAIL) {
    return -FI_EINVAL;
  }
  const Session session;
  auto& endpoint = *object_of<Endpoint>(fid);
  *given_to = nullptr;
  if (!session || !endpoint.enabled) return -FI_EOPBADSTATE;
  if ((endpoint.capabilities & FI_COLLECTIVE) == 0) return -FI_EOPNOTSUPP;
  if (endpoint.events == nullptr) return -FI_ENOEQ;
  if (endpoint.joining != nullptr) return -FI_EAGAIN;
  auto& set = *reinterpret_cast<AddressSet*>(const_cast<fid_av_set*>(wanted->set));
  const std::uint32_t own = wire::make_address(session.channel().rank(), endpoint.index);
  const std::size_t place = own_place(endpoint, set, own);
  if (place == set.count) {
    log("fi_join_collective: end-point %u is not in the set", endpoint.index);
    return -FI_EADDRNOTAVAIL;
  }
  auto* group = allocate<Group>();
  if (group == nullptr) return -FI_ENOMEM;
  group->fid.fid.fclass = FI_CLASS_MC;
  group->fid.fid.context = group;
  group->fid.fid.ops = &object_calls;
  group->fid.fi_addr = reinterpret_cast<fi_addr_t>(group);
  group->endpoint = &endpoint;
  group->set = &set;
  group->given_to = given_to;
  group->context = context;
  group->own = set.members[place];
  group->next = endpoint.groups;
  endpoint.groups = endpoint.joining = group;
  ++set.groups;
  session.channel().charge(session.channel().header().costs.send_ps);
  push_list(session, *group);
  return 0;
}

bool accept_joined(const Session& session, const wire::Event& event) {
  Endpoint* endpoint = event.endpoint < wire::endpoint_count_max ? session.state().endpoints[event.endpoint] : nullptr;
  Group* group = endpoint != nullptr ? endpoint->joining : nullptr;
  if (group == nullptr || reinterpret_cast<std::uint64_t>(group) != event.context) return false;
  endpoint->joining = nullptr;
  fi_eq_err_entry entry{};
  entry.context = group->context;
  if (event.error != 0) {
    entry.data = FI_JOIN_COMPLETE;
    entry.err = -FI_ECONNREFUSED;  // with the sign that libfabric's cxi gives it
    entry.prov_errno = event.error;
    put_event(session.state(), *endpoint->events, FI_JOIN_COMPLETE, entry, true);
    unlink_and_free(group);
    return true;
  }
  group->number = static_cast<std::uint32_t>(event.new_group);
  group->place = static_cast<std::uint32_t>(event.member);
  group->joined = true;
  *group->given_to = &group->fid;
  entry.fid = &group->fid.fid;
  put_event(session.state(), *endpoint->events, FI_JOIN_COMPLETE, entry, false);
  return true;
}

Group* find_group(const Endpoint& endpoint, fi_addr_t address) {
  Group* group = endpoint.groups;
  while (group != nullptr && reinterpret_cast<fi_addr_t>(group) != address) group = group->next;
  return group;
}

void count_reduction(const Endpoint& endpoint, std::uint64_t number) {
  for (Group* group = endpoint.groups; group != nullptr; group = group->next) {
    if (group->joined && group->number == number) ++group->ended;
  }
}

void forget_groups(Endpoint& endpoint) {
  while (endpoint.groups != nullptr) unlink_and_free(endpoint.groups);
}

}  // namespace dryfly::provider
