// Sets of addresses of an address vector (fi_av_set), whose order is that of a group's members. As libfabric's cxi
// provider has them (cxip_avset.c): ranges of an FI_AV_TABLE, union, intersection and difference that keep the order,
// and no change while a group stands on the set. Left out: the comm_keys by which its tests choose trees that no fabric
// manager has made.
#pragma once

#include <rdma/fi_collective.h>

#include <cstddef>

#include "provider/av.hpp"

namespace dryfly::provider {

struct AddressSet {
  fid_av_set fid;
  AddressVector* vector;
  fi_addr_t* members;
  std::size_t count;
  std::size_t capacity;
  std::uint32_t groups;  // that stand on it

  // The place of an address, or count.
  std::size_t find(fi_addr_t member) const {
    std::size_t place = 0;
    while (place < count && members[place] != member) ++place;
    return place;
  }
};

int open_address_set(fid_av* vector, fi_av_set_attr* attributes, fid_av_set** set, void* context);

}  // namespace dryfly::provider
