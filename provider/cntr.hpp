// The counter: how many operations have completed, and how many have failed.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

#include "provider/domain.hpp"
#include "provider/news.hpp"
#include "provider/wait.hpp"

namespace dryfly::provider {

struct Counter {
  fid_cntr fid;
  Domain* domain;
  Outlet outlet;
  WaitObject wait;
  std::uint32_t users;  // end-points that are bound to it
  std::uint64_t value;
  std::uint64_t errors;
  std::uint64_t outstanding;  // operations under way that will be counted, and regions whose accesses are
  std::uint64_t last_read;    // what the program saw last

  void count(int error) { ++(error == 0 ? value : errors); }
};

int open_counter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context);

}  // namespace dryfly::provider
