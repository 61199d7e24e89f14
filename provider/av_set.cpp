#include "provider/av_set.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

// Of libfabric's cxi provider (rdma/fi_cxi_ext.h): how a group is to be made, and three numbers for tests.
struct CommKey {
  std::uint32_t kind;  // 0: by the fabric manager
  std::uint32_t numbers[3];
};

const AddressSet& set_of(const fid_av_set* fid) { return *reinterpret_cast<const AddressSet*>(fid); }

bool append(AddressSet& set, fi_addr_t member) {
  if (set.count == set.capacity) {
    constexpr std::size_t smallest = 16;
    const std::size_t capacity = std::max(set.capacity * 2, smallest);
    auto* members = static_cast<fi_addr_t*>(realloc(set.members, capacity * sizeof(fi_addr_t)));
    if (members == nullptr) return false;
    set.members = members;
    set.capacity = capacity;
  }
  set.members[set.count++] = member;
  return true;
}

int may_change(const AddressSet& set, const AddressSet& other) {
  if (set.vector != other.vector) return -FI_EINVAL;
  return set.groups != 0 ? -FI_EPERM : 0;
}

int unite(fid_av_set* fid, const fid_av_set* other_fid) {
  const Session session;
  auto& set = *object_of<AddressSet>(fid);
  const AddressSet& other = set_of(other_fid);
  if (const int error = may_change(set, other); error != 0) return error;
  for (std::size_t i = 0; i < other.count; ++i) {
    if (set.find(other.members[i]) == set.count && !append(set, other.members[i])) return -FI_ENOMEM;
  }
  return 0;
}

int keep(fid_av_set* fid, const fid_av_set* other_fid, bool those_in_other) {
  const Session session;
  auto& set = *object_of<AddressSet>(fid);
  const AddressSet& other = set_of(other_fid);
  if (const int error = may_change(set, other); error != 0) return error;
  const auto* end = std::remove_if(set.members, set.members + set.count, [&](fi_addr_t member) {
    return (other.find(member) < other.count) != those_in_other;
  });
  set.count = static_cast<std::size_t>(end - set.members);
  return 0;
}

int intersect(fid_av_set* fid, const fid_av_set* other) { return keep(fid, other, true); }

int subtract(fid_av_set* fid, const fid_av_set* other) { return keep(fid, other, false); }

int insert(fid_av_set* fid, fi_addr_t member) {
  const Session session;
  auto& set = *object_of<AddressSet>(fid);
  if (set.groups != 0) return -FI_EPERM;
  if (set.find(member) < set.count) return -FI_EINVAL;
  return append(set, member) ? 0 : -FI_ENOMEM;
}

int remove(fid_av_set* fid, fi_addr_t member) {
  const Session session;
  auto& set = *object_of<AddressSet>(fid);
  if (set.groups != 0) return -FI_EPERM;
  const std::size_t place = set.find(member);
  if (place == set.count) return -FI_EINVAL;
  std::copy(set.members + place + 1, set.members + set.count, set.members + place);
  --set.count;
  return 0;
}

// A group has an address of its own when it is joined; a set has none.
int address(fid_av_set*, fi_addr_t* group) {
  *group = FI_ADDR_NOTAVAIL;
  return 0;
}

int close_address_set(fid* fid) {
  const Session session;
  auto* set = object_of<AddressSet>(fid);
  if (set->groups != 0) return -FI_EBUSY;
  --set->vector->users;
  free(set->members);
  free(set);
  return 0;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_address_set,
    .bind = unsupported,
    .control = unsupported,
    .ops_open = unsupported,
};

fi_ops_av_set set_calls = {
    .size = sizeof(fi_ops_av_set),
    .set_union = unite,
    .intersect = intersect,
    .diff = subtract,
    .insert = insert,
    .remove = remove,
    .addr = address,
};

bool accepted(const fi_av_set_attr& attributes) {
  const bool begins = attributes.start_addr != FI_ADDR_NOTAVAIL;
  const bool ends = attributes.end_addr != FI_ADDR_NOTAVAIL;
  if (attributes.comm_key != nullptr && attributes.comm_key_size != 0) {
    if (attributes.comm_key_size != sizeof(CommKey)) return false;
    CommKey key;
    memcpy(&key, attributes.comm_key, sizeof key);
    if (key.kind != 0) {
      log("fi_av_set: comm_key of kind %u is not offered, only 0", key.kind);
      return false;
    }
  }
  if ((attributes.flags & FI_UNIVERSE) != 0) return true;
  return begins == ends && (!begins || attributes.count != 0) && (begins || attributes.stride <= 1);
}

bool fill(AddressSet& set, const fi_av_set_attr& attributes) {
  const AddressVector& vector = *set.vector;
  const bool all = (attributes.flags & FI_UNIVERSE) != 0;
  if (!all && attributes.start_addr == FI_ADDR_NOTAVAIL) return true;
  const std::uint64_t end = all ? vector.count : std::min(vector.count, attributes.end_addr + 1);
  const std::uint64_t stride = all ? 1 : std::max<std::uint64_t>(attributes.stride, 1);
  const std::uint64_t most = all ? vector.count : attributes.count;
  for (std::uint64_t at = all ? 0 : attributes.start_addr; at < end && set.count < most; at += stride) {
    if (vector.slots[at].used && !append(set, at)) return false;
  }
  return true;
}

}  // namespace

int open_address_set(fid_av* fid, fi_av_set_attr* attributes, fid_av_set** set_fid, void* context) {
  if (attributes == nullptr || !accepted(*attributes)) return -FI_EINVAL;
  auto* set = allocate<AddressSet>();
  if (set == nullptr) return -FI_ENOMEM;
  const Session session;
  set->vector = object_of<AddressVector>(fid);
  if (!fill(*set, *attributes)) {
    free(set->members);
    free(set);
    return -FI_ENOMEM;
  }
  set->fid.fid.fclass = FI_CLASS_AV_SET;
  set->fid.fid.context = context;
  set->fid.fid.ops = &object_calls;
  set->fid.ops = &set_calls;
  ++set->vector->users;
  *set_fid = &set->fid;
  return 0;
}

}  // namespace dryfly::provider
