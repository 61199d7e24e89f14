// The counter: how many operations have completed, and how many have failed.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

#include "core/unit/check.hpp"
#include "provider/domain.hpp"
#include "provider/news.hpp"

namespace dryfly::provider {

// What the machine's counters hold; the provider refuses to set or wait for more.
inline constexpr std::uint64_t counter_value_max = (std::uint64_t{1} << 48) - 1;
inline constexpr std::uint64_t counter_errors_max = (std::uint64_t{1} << 7) - 1;

struct Counter {
  fid_cntr fid;
  Domain* domain;
  Outlet outlet;
  fi_wait_obj wait;
  std::uint32_t number;  // by which the NIC knows it; from 1
  std::uint32_t users;   // end-points that are bound to it
  std::uint64_t value;
  std::uint64_t errors;
  std::uint64_t outstanding;  // operations under way that will be counted, and regions whose accesses are
  std::uint64_t last_read;    // what the program saw last
  void* doorbell;             // its page that processors and GPUs write to; null: nobody has asked for it
  bool expects_first;         // that what it has now comes there, after it was asked for
  void* written_back;         // where the NIC writes its value to; null: nowhere that the program knows
  Counter* next_extended;     // of those that have one of the two

  void count(int error) { ++(error == 0 ? value : errors); }
  // One of those under way is none any more.
  void settle_one() {
    DRYFLY_CHECK(outstanding != 0);
    --outstanding;
  }
};

int open_counter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** counter, void* context);

}  // namespace dryfly::provider
