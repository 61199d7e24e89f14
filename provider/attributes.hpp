// What the provider says of itself in fi_info, and checks hints against. Models the cxi provider of HPE Slingshot as
// libfabric ships it (docs/model/nic-protocols.md#end-point-attributes). Left out, and therefore not offered:
// scalable end-points, shared contexts; wait objects (FI_WAIT_FD) exist on a served fabric only, see wait.hpp.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstddef>
#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly::provider {

inline constexpr char provider_name[] = "cxi";
inline constexpr char domain_prefix[] = "cxi";  // cxi0, cxi1, ...: one domain per NIC of the node

// The provider shows two faces to libfabric: the network, by which a message within a node goes through the NIC as any
// other does, and the memory that the ranks of a node share. The second is for LINKx, which asks for a provider named
// shm to put beside cxi.
struct Face {
  const char* name;    // of the provider and of its fabric
  const char* domain;  // of its one domain; null: a domain for each NIC
};
inline constexpr Face network_face{provider_name, nullptr};
inline constexpr Face node_face{"shm", "shm"};

// libfabric keeps the ABI within a major version and marks growth by the size field of each table, so a provider
// that fills in the tables of its headers serves every 2.x.
inline constexpr std::uint32_t libfabric_version = FI_VERSION(2, 99);
inline constexpr std::uint32_t provider_version = FI_VERSION(0, 1);

inline constexpr std::uint64_t transmit_modifiers = FI_SEND | FI_READ | FI_WRITE;
inline constexpr std::uint64_t receive_modifiers = FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr std::uint64_t primary_capabilities = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
inline constexpr std::uint64_t domain_capabilities = FI_LOCAL_COMM | FI_REMOTE_COMM;
inline constexpr std::uint64_t secondary_capabilities = FI_MULTI_RECV | FI_SOURCE | FI_TRIGGER | domain_capabilities;
inline constexpr std::uint64_t asked_capabilities =
    FI_PEER | FI_RMA_EVENT | FI_FENCE | FI_NAMED_RX_CTX | FI_COLLECTIVE | FI_HMEM;  // granted to whom asks
inline constexpr std::uint64_t all_capabilities =
    primary_capabilities | FI_DIRECTED_RECV | transmit_modifiers | receive_modifiers | secondary_capabilities;
inline constexpr std::uint64_t transmit_capabilities =
    primary_capabilities | transmit_modifiers | FI_FENCE | FI_NAMED_RX_CTX | FI_HMEM;
inline constexpr std::uint64_t receive_capabilities =
    primary_capabilities | receive_modifiers | FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV | FI_RMA_EVENT | FI_HMEM;

inline constexpr std::uint64_t message_orders =
    FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RMA_WAW | FI_ORDER_RMA_RAR | FI_ORDER_ATOMIC_WAW | FI_ORDER_ATOMIC_RAR;

inline constexpr std::uint64_t transmit_flags = FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |
                                                FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_FENCE;
inline constexpr std::uint64_t receive_flags = FI_COMPLETION | FI_MULTI_RECV;

inline constexpr int region_modes = FI_MR_ENDPOINT | FI_MR_ALLOCATED;  // FI_MR_PROV_KEY is the application's choice
inline constexpr std::size_t client_key_bytes = 4;
inline constexpr std::size_t provider_key_bytes = 8;
inline constexpr std::uint64_t optimized_keys = 100;  // client keys below are those of optimized regions

inline constexpr std::size_t message_bytes_max = 0xffffffffU;
inline constexpr unsigned tag_bits = 48;
inline constexpr std::uint64_t tag_mask = (std::uint64_t{1} << tag_bits) - 1;
// Alternating bits: any bit of a tag may be ignored.
inline constexpr std::uint64_t tag_format = 0xaaaaaaaaaaaaaaaaU >> (64 - tag_bits);
inline constexpr std::size_t cq_data_bytes = 8;
inline constexpr std::size_t completion_queues = 32;
inline constexpr std::size_t endpoints = wire::endpoint_count_max;
inline constexpr std::size_t counters = 16;
inline constexpr std::size_t memory_regions = 100;
inline constexpr std::size_t queue_depth = 1024;
inline constexpr std::size_t least_queue_depth = 16;
inline constexpr std::size_t transmit_depth_max = 16384;
inline constexpr std::size_t receive_depth_max = 15360;
inline constexpr std::size_t min_multi_receive = 64;

}  // namespace dryfly::provider
