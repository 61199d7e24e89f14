#include "provider/av.hpp"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "provider/av_set.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/peer.hpp"
#include "provider/process.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

void forget_reverse(AddressVector& vector) {
  free(vector.by_endpoint);
  vector.by_endpoint = nullptr;
}

bool ensure_capacity(AddressVector& vector, std::uint64_t wanted) {
  if (wanted <= vector.capacity) return true;
  constexpr std::uint64_t smallest = 64;
  const std::uint64_t capacity = std::max({wanted, vector.capacity * 2, smallest});
  auto* slots = static_cast<AddressVector::Slot*>(realloc(vector.slots, capacity * sizeof(AddressVector::Slot)));
  if (slots == nullptr) return false;
  vector.slots = slots;
  vector.capacity = capacity;
  return true;
}

// The index, FI_ADDR_NOTAVAIL without memory.
fi_addr_t insert_one(AddressVector& vector, const Address& address, const fi_addr_t* name) {
  fi_addr_t index = vector.count;
  if (vector.removed != 0) {
    index = 0;
    while (vector.slots[index].used) ++index;
    --vector.removed;
  } else {
    if (!ensure_capacity(vector, vector.count + 1)) return FI_ADDR_NOTAVAIL;
    ++vector.count;
  }
  vector.slots[index] = {address, true, name != nullptr ? *name : index};
  return index;
}

int insert(fid_av* fid, const void* addresses, std::size_t count, fi_addr_t* handles, std::uint64_t flags,
           void* context) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  if ((flags & ~std::uint64_t{FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID}) != 0) return -FI_EBADFLAGS;
  const bool named = (flags & FI_AV_USER_ID) != 0;
  if (named && handles == nullptr) return -FI_EINVAL;
  auto& vector = *object_of<AddressVector>(fid);
  const std::uint64_t limit = std::uint64_t{session.channel().welcome().rank_count} * wire::endpoint_count_max;
  auto* errors = (flags & FI_SYNC_ERR) != 0 ? static_cast<int*>(context) : nullptr;
  int inserted = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Address address;
    memcpy(&address, static_cast<const char*>(addresses) + i * sizeof address, sizeof address);
    fi_addr_t handle = FI_ADDR_NOTAVAIL;
    if (address.endpoint < limit) handle = insert_one(vector, address, named ? &handles[i] : nullptr);
    if (handle == FI_ADDR_NOTAVAIL) log("fi_av_insert: 0x%x is no address of this run", address.endpoint);
    if (handles != nullptr) handles[i] = handle;
    if (errors != nullptr) errors[i] = handle == FI_ADDR_NOTAVAIL ? FI_EINVAL : 0;
    if (handle != FI_ADDR_NOTAVAIL) ++inserted;
  }
  if (count == 1 && handles != nullptr) session.channel().address_inserted(handles);
  forget_reverse(vector);
  if (named) peer::name_sources(vector);
  return inserted;
}

int remove(fid_av* fid, fi_addr_t* handles, std::size_t count, std::uint64_t) {
  const Session session;
  auto& vector = *object_of<AddressVector>(fid);
  for (std::size_t i = 0; i < count; ++i) {
    if (handles[i] >= vector.count || !vector.slots[handles[i]].used) return -FI_EINVAL;
    vector.slots[handles[i]].used = false;
    ++vector.removed;
  }
  forget_reverse(vector);
  return 0;
}

int lookup(fid_av* fid, fi_addr_t handle, void* address, std::size_t* length) {
  const Session session;
  const auto& vector = *object_of<AddressVector>(fid);
  if (handle >= vector.count || !vector.slots[handle].used) return -FI_EINVAL;
  memcpy(address, &vector.slots[handle].address, std::min(*length, sizeof(Address)));
  *length = sizeof(Address);
  return 0;
}

const char* address_text(fid_av*, const void* bytes, char* buffer, std::size_t* length) {
  Address address;
  memcpy(&address, bytes, sizeof address);
  const int needed =
      snprintf(buffer, *length, "fi_addr_cxi://rank%u/endpoint%u/cxi%u", wire::address_rank(address.endpoint),
               wire::address_endpoint(address.endpoint), address.nic);
  *length = static_cast<std::size_t>(needed) + 1;
  return buffer;
}

int close_address_vector(fid* fid) {
  const Session session;
  auto* vector = object_of<AddressVector>(fid);
  if (vector->users != 0) return -FI_EBUSY;
  --vector->domain->users;
  free(vector->slots);
  free(vector->by_endpoint);
  free(vector);
  return 0;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_address_vector,
    .bind = unsupported,
    .control = unsupported,
    .ops_open = unsupported,
};

fi_ops_av vector_calls = {
    .size = sizeof(fi_ops_av),
    .insert = insert,
    .insertsvc = unsupported,
    .insertsym = unsupported,
    .remove = remove,
    .lookup = lookup,
    .straddr = address_text,
    .av_set = open_address_set,
};

}  // namespace

fi_addr_t AddressVector::reverse(std::uint32_t endpoint) {
  if (by_endpoint == nullptr) {
    by_endpoint_count = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (slots[i].used) by_endpoint_count = std::max(by_endpoint_count, std::uint64_t{slots[i].address.endpoint} + 1);
    }
    by_endpoint = allocate<fi_addr_t>(by_endpoint_count + 1);
    if (by_endpoint == nullptr) return FI_ADDR_NOTAVAIL;
    // Of several entries for one end-point libfabric's cxi keeps the first name, its shm takes the last.
    const bool last_stands = domain->fabric->face->domain != nullptr;
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!slots[i].used) continue;
      fi_addr_t& entry = by_endpoint[slots[i].address.endpoint];
      if (entry == 0 || last_stands) entry = i + 1;
    }
  }
  const fi_addr_t found = endpoint < by_endpoint_count ? by_endpoint[endpoint] : 0;
  return found != 0 ? slots[found - 1].name : FI_ADDR_NOTAVAIL;
}

int open_address_vector(fid_domain* domain, fi_av_attr* attributes, fid_av** fid, void* context) {
  // Named vectors are shared between processes (FI_SHARED_AV), asynchronous ones report to an event queue.
  if (attributes->name != nullptr || (attributes->flags & FI_EVENT) != 0) return -FI_ENOSYS;
  auto* vector = allocate<AddressVector>();
  if (vector == nullptr) return -FI_ENOMEM;
  if (!ensure_capacity(*vector, attributes->count)) {
    free(vector);
    return -FI_ENOMEM;
  }
  vector->fid.fid.fclass = FI_CLASS_AV;
  vector->fid.fid.context = context;
  vector->fid.fid.ops = &object_calls;
  vector->fid.ops = &vector_calls;
  vector->domain = object_of<Domain>(domain);
  if (attributes->type == FI_AV_UNSPEC) attributes->type = FI_AV_TABLE;
  const Session session;
  ++vector->domain->users;
  *fid = &vector->fid;
  return 0;
}

}  // namespace dryfly::provider
