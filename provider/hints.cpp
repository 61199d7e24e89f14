#include "provider/hints.hpp"

#include <string.h>

#include "provider/attributes.hpp"
#include "provider/auth_key.hpp"
#include "provider/log.hpp"
#include "provider/process.hpp"

namespace dryfly::provider {

namespace {

// FI_PROGRESS_CONTROL_UNIFIED of libfabric 2: manual progress with one lock, which is what the provider has.
constexpr int progress_control_unified = 3;

bool refuse(const char* what, std::uint64_t asked, std::uint64_t offered) {
  log("fi_getinfo: %s 0x%llx is not offered (offered: 0x%llx)", what, static_cast<unsigned long long>(asked),
      static_cast<unsigned long long>(offered));
  return false;
}

bool within(const char* what, std::uint64_t asked, std::uint64_t offered) {
  return (asked & ~offered) == 0 || refuse(what, asked & ~offered, offered);
}

bool at_most(const char* what, std::uint64_t asked, std::uint64_t limit) {
  return asked <= limit || refuse(what, asked, limit);
}

bool either(const char* what, std::uint64_t asked, std::uint64_t offered, std::uint64_t also) {
  return asked == 0 || asked == offered || asked == also || refuse(what, asked, offered);
}

bool fabric_accepted(const Face& face, const fi_fabric_attr* fabric) {
  if (fabric == nullptr) return true;
  // Hints for another provider are none of our business, and not worth a word in the log.
  if (fabric->prov_name != nullptr && strstr(fabric->prov_name, face.name) == nullptr) return false;
  if (fabric->name == nullptr || strcmp(fabric->name, face.name) == 0) return true;
  log("fi_getinfo: there is no fabric '%s' here, only '%s'", fabric->name, face.name);
  return false;
}

bool endpoint_accepted(const fi_ep_attr* endpoint) {
  if (endpoint == nullptr) return true;
  // A tag format is read as its highest bit: the application's must fit into ours.
  const std::uint64_t format_limit = tag_mask;
  return either("ep_attr.type", endpoint->type, FI_EP_RDM, FI_EP_RDM) &&
         either("ep_attr.protocol", endpoint->protocol, FI_PROTO_CXI, FI_PROTO_CXI) &&
         at_most("ep_attr.max_msg_size", endpoint->max_msg_size, message_bytes_max) &&
         at_most("ep_attr.msg_prefix_size", endpoint->msg_prefix_size, 0) &&
         at_most("ep_attr.max_order_raw_size", endpoint->max_order_raw_size, 0) &&
         at_most("ep_attr.max_order_war_size", endpoint->max_order_war_size, 0) &&
         at_most("ep_attr.mem_tag_format", endpoint->mem_tag_format, format_limit) &&
         at_most("ep_attr.tx_ctx_cnt", endpoint->tx_ctx_cnt, 1) &&
         at_most("ep_attr.rx_ctx_cnt", endpoint->rx_ctx_cnt, 1) &&
         auth_key_accepted(endpoint->auth_key, endpoint->auth_key_size);
}

bool domain_accepted(std::uint32_t version, std::uint64_t capabilities, const fi_domain_attr* domain) {
  const bool has_memory_calls = capabilities == 0 || (capabilities & (FI_RMA | FI_ATOMIC)) != 0;
  if (domain == nullptr) return true;
  const std::uint64_t region_mode = static_cast<std::uint32_t>(domain->mr_mode);
  // Before 1.5 the field holds FI_MR_UNSPEC, BASIC or SCALABLE, and only the first leaves the choice to us.
  if (version < FI_VERSION(1, 5) && region_mode != 0) return refuse("domain_attr.mr_mode", region_mode, 0);
  // Who says FI_MR_ENDPOINT alone means FI_MR_ALLOCATED too, for old applications (cxip_getinfo).
  const bool may_page = process().environment.registration.on_demand_paging || region_mode == FI_MR_ENDPOINT;
  const std::uint64_t needed = may_page ? FI_MR_ENDPOINT : region_modes;
  if (version >= FI_VERSION(1, 5) && has_memory_calls && (needed & ~region_mode) != 0) {
    log("fi_getinfo: domain_attr.mr_mode 0x%llx lacks 0x%llx (FI_MR_ENDPOINT, FI_MR_ALLOCATED), which is needed",
        static_cast<unsigned long long>(region_mode), static_cast<unsigned long long>(needed & ~region_mode));
    return false;
  }
  return either("domain_attr.control_progress", domain->control_progress, FI_PROGRESS_MANUAL,
                progress_control_unified) &&
         either("domain_attr.data_progress", domain->data_progress, FI_PROGRESS_MANUAL, progress_control_unified) &&
         either("domain_attr.av_type", domain->av_type, FI_AV_TABLE, FI_AV_MAP) &&
         at_most("domain_attr.threading", domain->threading, FI_THREAD_ENDPOINT) &&
         at_most("domain_attr.resource_mgmt", domain->resource_mgmt, FI_RM_ENABLED) &&
         within("domain_attr.caps", domain->caps, domain_capabilities) &&
         at_most("domain_attr.mr_key_size", domain->mr_key_size, provider_key_bytes) &&
         at_most("domain_attr.cq_data_size", domain->cq_data_size, cq_data_bytes) &&
         at_most("domain_attr.cq_cnt", domain->cq_cnt, completion_queues) &&
         at_most("domain_attr.ep_cnt", domain->ep_cnt, endpoints) &&
         at_most("domain_attr.cntr_cnt", domain->cntr_cnt, counters) &&
         at_most("domain_attr.mr_cnt", domain->mr_cnt, memory_regions) &&
         at_most("domain_attr.mr_iov_limit", domain->mr_iov_limit, 1) &&
         at_most("domain_attr.max_ep_tx_ctx", domain->max_ep_tx_ctx, 1) &&
         at_most("domain_attr.max_ep_rx_ctx", domain->max_ep_rx_ctx, 1) &&
         at_most("domain_attr.max_ep_stx_ctx", domain->max_ep_stx_ctx, 0) &&
         at_most("domain_attr.max_ep_srx_ctx", domain->max_ep_srx_ctx, 0) &&
         auth_key_accepted(domain->auth_key, domain->auth_key_size);
}

bool transmit_accepted(const fi_tx_attr* transmit, std::size_t inject_bytes) {
  if (transmit == nullptr) return true;
  return within("tx_attr.caps", transmit->caps, all_capabilities | asked_capabilities) &&
         within("tx_attr.op_flags", transmit->op_flags, transmit_flags) &&
         within("tx_attr.msg_order", transmit->msg_order, message_orders) &&
         within("tx_attr.comp_order", transmit->comp_order, 0) &&
         at_most("tx_attr.inject_size", transmit->inject_size, inject_bytes) &&
         at_most("tx_attr.size", transmit->size, transmit_depth_max) &&
         at_most("tx_attr.iov_limit", transmit->iov_limit, 1) &&
         at_most("tx_attr.rma_iov_limit", transmit->rma_iov_limit, 1);
}

bool receive_accepted(const fi_rx_attr* receive) {
  if (receive == nullptr) return true;
  return within("rx_attr.caps", receive->caps, all_capabilities | asked_capabilities) &&
         within("rx_attr.op_flags", receive->op_flags, receive_flags) &&
         within("rx_attr.msg_order", receive->msg_order, message_orders) &&
         within("rx_attr.comp_order", receive->comp_order, 0) &&
         at_most("rx_attr.size", receive->size, receive_depth_max) &&
         at_most("rx_attr.iov_limit", receive->iov_limit, 1);
}

}  // namespace

bool hints_accepted(const Face& face, std::uint32_t version, const fi_info& hints, std::size_t inject_bytes) {
  return fabric_accepted(face, hints.fabric_attr) &&
         within("caps", hints.caps, all_capabilities | asked_capabilities) &&
         either("addr_format", hints.addr_format, FI_FORMAT_UNSPEC, FI_ADDR_CXI) && endpoint_accepted(hints.ep_attr) &&
         domain_accepted(version, hints.caps, hints.domain_attr) && transmit_accepted(hints.tx_attr, inject_bytes) &&
         receive_accepted(hints.rx_attr);
}

}  // namespace dryfly::provider
