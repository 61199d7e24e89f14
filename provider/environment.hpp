// The FI_CXI_* settings of the process that change what the provider or the NIC does, with the names, defaults and
// limits of libfabric's cxi provider (docs/model/nic-protocols.md#settings). What that provider warns of and
// replaces by its default is refused here, in its words. docs/reference/provider-settings.md lists those that are
// not modelled.
#pragma once

#include <cstddef>
#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly::provider {

enum class MatchMode : std::uint32_t { hardware = 0, software, hybrid };  // as dryfly::MatchMode

// Who tells the cache of registrations that memory has gone (FI_MR_CACHE_MONITOR).
enum class MemoryMonitor : std::uint8_t { memhooks = 0, kdreg2, userfaultfd, disabled };

// How buffers are made known to the NIC. libfabric's own FI_MR_CACHE_* are among these.
struct RegistrationSettings {
  MemoryMonitor monitor;
  std::uint64_t ranges_max;  // of the cache; 0: there is none
  std::uint64_t bytes_max;
  bool on_demand_paging;
  bool only_on_demand_paging;
  bool translates;          // FI_CXI_ATS
  bool keeps_translations;  // FI_CXI_IOTLB: the NIC does
  std::uint64_t heap_page;  // libhugetlbfs puts the heap on such pages; 0: it does not
  bool attaches;            // FI_SHM_USE_XPMEM: by shm, cores copy out of memory that they have attached
};

// How device memory is known to libfabric, and copied by the provider (docs/model/gpu.md#what-the-provider-copies).
struct DeviceSettings {
  std::uint32_t interfaces;            // FI_HMEM: a bit by fi_hmem_iface
  std::uint64_t processor_copies_max;  // FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD
  bool unregistered;                   // FI_CXI_DISABLE_HMEM_DEV_REGISTER
  bool no_runtime;                     // FI_CXI_FORCE_DEV_REG_COPY
  bool gdrcopy;                        // FI_HMEM_CUDA_USE_GDRCOPY
  bool unknown_buffers;                // FI_CXI_DISABLE_HOST_REGISTER: the provider's own
  bool unsynchronised;                 // FI_CXI_DISABLE_CUDA_SYNC_MEMOPS, with CUDA
  bool fork_safe;                      // CXI_FORK_SAFE, which has sends avoid mappings
};

struct Environment {
  MatchMode match_mode;
  bool rendezvous_given;  // one of the next three; else the machine's sizes hold
  std::uint64_t rendezvous_threshold;
  std::uint64_t rendezvous_get_min;
  std::uint64_t rendezvous_eager_size;
  bool no_message_inline;  // unless injected
  bool no_memory_inline;
  bool no_atomic_inline;
  bool optimized_regions;
  bool write_data;  // fi_writedata, for domains with keys of the provider's
  std::uint64_t overflow_buffer;
  std::uint64_t overflow_buffers;
  std::uint64_t request_buffer;
  std::uint64_t request_buffers;
  std::uint64_t event_batch;
  std::uint64_t queue_size;
  std::uint64_t transmit_size;
  std::uint64_t receive_size;
  bool preempt_on_pool;
  bool preempt_on_posted;
  bool preempt_on_unexpected;
  std::uint64_t join_radix;             // of the tree in which a group is formed
  std::uint64_t collective_timeout_us;  // how long a reduction engine stays armed
  std::uint64_t groups_per_job;         // 0: no limit
  bool collective_dma;                  // the NIC fetches reduction packets
  bool preempt_on_overflow;
  std::uint8_t software_class;  // dryfly::TrafficClass of the Gets and notices that software sends
  std::uint64_t software_gets;  // that may be under way
  bool lossless;
  bool restricted_gets;         // FI_CXI_RDZV_PROTO=alt_read
  bool commands_fetched;        // FI_CXI_LLRING_MODE=never
  std::uint64_t control_bytes;  // at most, of the event queue for what providers tell each other
  std::uint64_t retry_delay_us;
  bool match_events;
  RegistrationSettings registration;
  DeviceSettings device_memory;
  bool limited_work;  // FI_CXI_ENABLE_TRIG_OP_LIMIT
  bool key_cache;     // of the provider's own keys
  std::uint16_t default_network;
  const char* devices;  // list of the NICs to be shown; nullptr: all

  bool shows(const char* device) const;
  std::uint64_t eager_max() const { return rendezvous_threshold + rendezvous_get_min; }
  // For an end-point with these attributes.
  wire::EndpointSettings settings(std::size_t receive_attribute, std::size_t queue_attribute) const;

 private:
  std::uint32_t control_slots() const;
};

// False: a setting is refused, and `reason` says so in one line.
bool read_environment(Environment& environment, char* reason, std::size_t room);

}  // namespace dryfly::provider
