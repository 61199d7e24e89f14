// The address vector: a table from fi_addr_t (its index) to the address of an end-point. An address names the rank,
// the end-point within it and the NIC it uses; the wire needs only the first two.
#pragma once

#include <rdma/fi_domain.h>

#include <cstdint>

#include "provider/domain.hpp"

namespace dryfly::provider {

// What fi_getname gives and fi_av_insert takes.
struct Address {
  std::uint32_t endpoint;  // wire::make_address
  std::uint32_t nic;
};
static_assert(sizeof(Address) == 8);

struct AddressVector {
  fid_av fid;
  Domain* domain;
  std::uint32_t users;  // end-points that are bound to it
  struct Slot {
    Address address;
    bool used;
    fi_addr_t name;  // by which completions call it: the index, or what FI_AV_USER_ID has said
  };
  Slot* slots;
  std::uint64_t count;  // slots ever used; a removed one is filled again first
  std::uint64_t capacity;
  std::uint64_t removed;
  fi_addr_t* by_endpoint;  // index + 1 of each wire address; built by the first reverse look-up, and dropped on change
  std::uint64_t by_endpoint_count;

  // The wire address, or false for an fi_addr_t that is not in the table.
  bool find(fi_addr_t handle, std::uint32_t& endpoint) const {
    if (handle >= count || !slots[handle].used) return false;
    endpoint = slots[handle].address.endpoint;
    return true;
  }
  // What an end-point is called, FI_ADDR_NOTAVAIL if it is not in the table.
  fi_addr_t reverse(std::uint32_t endpoint);
};

int open_address_vector(fid_domain* domain, fi_av_attr* attributes, fid_av** vector, void* context);

}  // namespace dryfly::provider
