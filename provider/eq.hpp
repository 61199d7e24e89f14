// The event queue. Address insertion and memory registration are done when their calls return, so that it carries what
// the application writes into it, and how joins of groups have ended.
#pragma once

#include <rdma/fi_eq.h>

#include <cstdint>

#include "provider/news.hpp"
#include "provider/process.hpp"

namespace dryfly::provider {

struct Fabric;
struct StoredEvent;

struct EventQueue {
  fid_eq fid;
  Fabric* fabric;
  fi_wait_obj wait;
  StoredEvent* first;
  StoredEvent* last;
  std::uint32_t users;  // end-points that report to it
  bool is_outlet;       // has had an event of an end-point's
  Outlet outlet;
};

int open_event_queue(fid_fabric* fabric, fi_eq_attr* attributes, fid_eq** queue, void* context);
// An event of an end-point's; one that is not an error has the part of the entry that fi_eq_entry has.
void put_event(Process& state, EventQueue& queue, std::uint32_t event, const fi_eq_err_entry& entry, bool is_error);

}  // namespace dryfly::provider
