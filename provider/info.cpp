#include "provider/info.hpp"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/attributes.hpp"
#include "provider/auth_key.hpp"
#include "provider/av.hpp"
#include "provider/hints.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/nic_info.hpp"
#include "provider/nic_order.hpp"
#include "provider/process.hpp"
#include "provider/refusal.hpp"
#include "provider/traffic_class.hpp"

namespace dryfly::provider {

namespace {

// libfabric 2 reads more of fi_domain_attr than the headers of 1.17 declare; these are its fields behind byte 192.
struct DomainAttributesTail {
  std::size_t max_endpoint_keys;
  std::uint32_t max_group_id;
  std::uint64_t max_counter_value;
  std::uint64_t max_error_counter_value;
};
constexpr std::size_t tail_offset = 192;
static_assert(offsetof(fi_domain_attr, tclass) + sizeof(std::uint64_t) == tail_offset);
// What a later libfabric may append to any of the structures that it copies from us.
constexpr std::size_t room_to_grow = 256;

template <class T>
T* allocate_growable() {
  return static_cast<T*>(calloc(1, sizeof(T) + room_to_grow));
}

void free_info(fi_info* info) {
  while (info != nullptr) {
    fi_info* next = info->next;
    if (info->nic != nullptr) fi_close(&info->nic->fid);
    if (info->domain_attr != nullptr) {
      free(info->domain_attr->name);
      free(info->domain_attr->auth_key);
    }
    if (info->ep_attr != nullptr) free(info->ep_attr->auth_key);
    if (info->fabric_attr != nullptr) free(info->fabric_attr->name);
    free(info->src_addr);
    free(info->dest_addr);
    free(info->tx_attr);
    free(info->rx_attr);
    free(info->ep_attr);
    free(info->domain_attr);
    free(info->fabric_attr);
    free(info);
    info = next;
  }
}

// Asking for a primary capability without saying which direction asks for all of them.
// FI_SOURCE, which makes receives slower on the machine, is granted to who asks for it.
std::uint64_t granted(std::uint64_t asked) {
  if (asked == 0) return all_capabilities & ~FI_SOURCE;
  std::uint64_t granted = asked | (secondary_capabilities & ~FI_SOURCE);
  if ((asked & (FI_MSG | FI_TAGGED)) != 0 && (asked & (FI_SEND | FI_RECV)) == 0) granted |= FI_SEND | FI_RECV;
  // Collectives need messages, of either kind.
  if ((asked & FI_COLLECTIVE) != 0 && (asked & (FI_MSG | FI_TAGGED)) == 0) granted |= FI_MSG | FI_SEND | FI_RECV;
  constexpr std::uint64_t memory = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
  if ((asked & (FI_RMA | FI_ATOMIC)) != 0 && (asked & memory) == 0) granted |= memory;
  return granted;
}

void fill_transmit(fi_tx_attr& transmit, std::uint64_t capabilities, std::size_t inject_bytes,
                   const fi_tx_attr* hints) {
  transmit.caps = capabilities & transmit_capabilities;
  transmit.msg_order = message_orders;
  transmit.inject_size = inject_bytes;
  transmit.size = process().environment.transmit_size;
  transmit.iov_limit = 1;
  transmit.rma_iov_limit = 1;
  if (hints == nullptr) return;
  if (hints->caps != 0) transmit.caps &= hints->caps;
  transmit.op_flags = hints->op_flags;
  transmit.msg_order = hints->msg_order;  // none if none is asked for: order rules out restricted writes
  if (hints->size != 0) transmit.size = hints->size;
  transmit.tclass = hints->tclass;
}

void fill_receive(fi_rx_attr& receive, std::uint64_t capabilities, const fi_rx_attr* hints) {
  receive.caps = capabilities & receive_capabilities;
  receive.msg_order = message_orders;
  receive.size = process().environment.receive_size;
  receive.iov_limit = 1;
  if (hints == nullptr) return;
  if (hints->caps != 0) receive.caps &= hints->caps;
  receive.op_flags = hints->op_flags;
  if (hints->size != 0) receive.size = hints->size;
}

void fill_endpoint(fi_ep_attr& endpoint, const fi_ep_attr* hints) {
  endpoint.type = FI_EP_RDM;
  endpoint.protocol = FI_PROTO_CXI;
  endpoint.protocol_version = 1;
  endpoint.max_msg_size = message_bytes_max;
  endpoint.max_order_waw_size = ~std::size_t{0};
  endpoint.mem_tag_format = tag_format;
  if (hints == nullptr) return;
  endpoint.tx_ctx_cnt = hints->tx_ctx_cnt;
  endpoint.rx_ctx_cnt = hints->rx_ctx_cnt;
}

void fill_domain(fi_domain_attr& domain, const fi_domain_attr* hints) {
  domain.threading = FI_THREAD_SAFE;
  domain.control_progress = FI_PROGRESS_MANUAL;
  domain.data_progress = FI_PROGRESS_MANUAL;
  domain.resource_mgmt = FI_RM_ENABLED;
  domain.av_type = FI_AV_TABLE;
  const Environment& environment = process().environment;
  const bool may_page =
      environment.registration.on_demand_paging && hints != nullptr && (hints->mr_mode & FI_MR_ALLOCATED) == 0;
  domain.mr_mode = environment.registration.only_on_demand_paging || may_page ? FI_MR_ENDPOINT : region_modes;
  domain.mr_key_size = client_key_bytes;
  domain.cq_data_size = cq_data_bytes;
  domain.cq_cnt = completion_queues;
  domain.ep_cnt = endpoints;
  domain.tx_ctx_cnt = 1;
  domain.rx_ctx_cnt = 1;
  domain.max_ep_tx_ctx = 1;
  domain.max_ep_rx_ctx = 1;
  domain.cntr_cnt = counters;
  domain.mr_iov_limit = 1;
  domain.caps = domain_capabilities;
  domain.mr_cnt = memory_regions;
  DomainAttributesTail tail{};
  tail.max_endpoint_keys = 1;
  tail.max_counter_value = ~std::uint64_t{0};
  tail.max_error_counter_value = ~std::uint64_t{0};
  memcpy(reinterpret_cast<char*>(&domain) + tail_offset, &tail, sizeof tail);
  if (hints == nullptr) return;
  if (hints->threading != FI_THREAD_UNSPEC) domain.threading = hints->threading;
  if (hints->av_type != FI_AV_UNSPEC) domain.av_type = hints->av_type;
  if ((hints->mr_mode & FI_MR_PROV_KEY) != 0) {
    domain.mr_mode |= FI_MR_PROV_KEY;
    domain.mr_key_size = provider_key_bytes;
  }
  domain.tclass = hints->tclass;
}

// What the hints say: who has no key leaves it null, and gets the job's with its domain. One for the end-point alone is
// its domain's too. False without memory.
bool fill_auth_keys(fi_info& info, const fi_info* hints) {
  const fi_domain_attr* domain = hints != nullptr ? hints->domain_attr : nullptr;
  const fi_ep_attr* endpoint = hints != nullptr ? hints->ep_attr : nullptr;
  const void* of_endpoint = endpoint != nullptr ? endpoint->auth_key : nullptr;
  const void* of_domain = domain != nullptr && domain->auth_key != nullptr ? domain->auth_key : of_endpoint;
  return copy_auth_key(of_domain, info.domain_attr->auth_key, info.domain_attr->auth_key_size) &&
         copy_auth_key(of_endpoint, info.ep_attr->auth_key, info.ep_attr->auth_key_size);
}

struct NicName {
  char text[16];
};

NicName name_of(std::uint32_t nic) {
  NicName name{};
  snprintf(name.text, sizeof name.text, "%s%u", domain_prefix, nic);
  return name;
}

fi_info* make_info(const Face& face, const rank::Channel& channel, std::uint32_t nic, const fi_info* hints) {
  auto* info = allocate_growable<fi_info>();
  if (info == nullptr) return nullptr;
  info->tx_attr = allocate_growable<fi_tx_attr>();
  info->rx_attr = allocate_growable<fi_rx_attr>();
  info->ep_attr = allocate_growable<fi_ep_attr>();
  info->domain_attr = allocate_growable<fi_domain_attr>();
  info->fabric_attr = allocate_growable<fi_fabric_attr>();
  auto* source = allocate<Address>();
  info->src_addr = source;
  const NicName own_name = name_of(nic);
  const char* name = face.domain != nullptr ? face.domain : own_name.text;
  info->nic = describe_nic(name, nic, channel.welcome().node_name);
  if (info->domain_attr != nullptr) info->domain_attr->name = strdup(name);
  if (info->fabric_attr != nullptr) info->fabric_attr->name = strdup(face.name);
  if (source == nullptr || info->tx_attr == nullptr || info->rx_attr == nullptr || info->ep_attr == nullptr ||
      info->nic == nullptr || info->domain_attr == nullptr || info->domain_attr->name == nullptr ||
      info->fabric_attr == nullptr || info->fabric_attr->name == nullptr || !fill_auth_keys(*info, hints)) {
    free_info(info);
    return nullptr;
  }
  info->caps = granted(hints != nullptr ? hints->caps : 0);
  info->addr_format = FI_ADDR_CXI;
  // The NIC; which end-point of it is known when there is one (fi_getname).
  *source = {wire::make_address(channel.rank(), 0), nic};
  info->src_addrlen = sizeof *source;
  // prov_name stays null: libfabric puts the name in, and would append it to one that is there.
  info->fabric_attr->prov_version = provider_version;
  fill_transmit(*info->tx_attr, info->caps, channel.header().inline_max, hints != nullptr ? hints->tx_attr : nullptr);
  fill_receive(*info->rx_attr, info->caps, hints != nullptr ? hints->rx_attr : nullptr);
  fill_endpoint(*info->ep_attr, hints != nullptr ? hints->ep_attr : nullptr);
  fill_domain(*info->domain_attr, hints != nullptr ? hints->domain_attr : nullptr);
  return info;
}

bool is_shown(std::uint32_t nic) { return process().environment.shows(name_of(nic).text); }

// The warning about the class in all ranks' environment is said before the start.
bool class_settings_accepted(const rank::Channel& channel) {
  char text[512];
  const ClassSettings found = check_class_settings(text, sizeof text);
  if (found == ClassSettings::refused) refuse_setting(channel, text);
  const char* told = getenv("DRYFLY_CLASS_TOLD");
  const char* wanted = getenv("MPICH_OFI_DEFAULT_TCLASS");
  const bool is_news = told == nullptr || wanted == nullptr || strcmp(told, wanted) != 0;
  static bool warned = false;
  if (found == ClassSettings::doubtful && is_news && !warned) {
    warned = true;
    tell(channel, About::traffic_class, "warning: %s", text);
  }
  return found != ClassSettings::refused;
}

bool names_a_nic(const rank::Channel& channel) {
  const std::uint32_t nics = channel.welcome().nics_per_node;
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    if (is_shown(nic)) return true;
  }
  char text[512];
  snprintf(text, sizeof text, "FI_CXI_DEVICE_NAME=%s: it names no NIC of the node; accepted are %s0 to %s%u",
           process().environment.devices, domain_prefix, domain_prefix, nics - 1);
  refuse_setting(channel, text);
  return false;
}

bool settings_accepted(const rank::Channel& channel) {
  char reason[512];
  if (read_environment(process().environment, reason, sizeof reason)) {
    return class_settings_accepted(channel);
  }
  refuse_setting(channel, reason);
  return false;
}

// The NIC that the caller names, by domain or, with FI_SOURCE, as the node; false when the name is unknown.
bool wanted_nic(const rank::Channel& channel, const char* node, std::uint64_t flags, const fi_info* hints, bool& any,
                std::uint32_t& nic) {
  any = true;
  const char* name = nullptr;
  if (hints != nullptr && hints->domain_attr != nullptr) name = hints->domain_attr->name;
  if (name == nullptr && (flags & FI_SOURCE) != 0) name = node;
  if (name == nullptr) return true;
  any = false;
  if (nic_index_of(name, nic) && nic < channel.welcome().nics_per_node) return true;
  log("fi_getinfo: there is no NIC '%s' on this node (%u NICs, named cxi0 and so on)", name,
      channel.welcome().nics_per_node);
  return false;
}

// A service is the number of an end-point, as a PID is on the machine; FI_SOURCE says of what node and service are.
bool node_and_service_accepted(const char* node, const char* service, std::uint64_t flags, std::uint32_t& endpoint) {
  endpoint = 0;
  if ((flags & FI_SOURCE) != 0 && node == nullptr && service == nullptr) return false;
  if (service == nullptr) return true;
  char* end = nullptr;
  const unsigned long number = strtoul(service, &end, 0);
  if (*service < '0' || *service > '9' || *end != 0 || number >= wire::endpoint_count_max) {
    log("fi_getinfo: service '%s'; accepted is the number of an end-point, below %u", service,
        wire::endpoint_count_max);
    return false;
  }
  endpoint = static_cast<std::uint32_t>(number);
  return true;
}

// Whom the caller wants to reach: an end-point of this process at a NIC of its node, by the NIC's name, or the address
// in the hints. Other names are for whoever exchanges addresses out of band. False without memory.
bool fill_destination(fi_info& info, const rank::Channel& channel, const char* node, std::uint32_t endpoint,
                      const fi_info* hints) {
  std::uint32_t nic = 0;
  Address named{};
  const void* address = nullptr;
  if (node != nullptr && nic_index_of(node, nic) && nic < channel.welcome().nics_per_node) {
    named = {wire::make_address(channel.rank(), endpoint), nic};
    address = &named;
  } else if (hints != nullptr && hints->dest_addrlen == sizeof named) {
    address = hints->dest_addr;
  }
  if (address == nullptr) return true;
  info.dest_addr = allocate<Address>();
  if (info.dest_addr == nullptr) return false;
  memcpy(info.dest_addr, address, sizeof named);
  info.dest_addrlen = sizeof named;
  return true;
}

}  // namespace

bool nic_index_of(const char* domain_name, std::uint32_t& index) {
  constexpr std::size_t prefix = sizeof domain_prefix - 1;
  if (domain_name == nullptr || strncmp(domain_name, domain_prefix, prefix) != 0) return false;
  const char* digits = domain_name + prefix;
  if (*digits < '0' || *digits > '9') return false;
  char* end = nullptr;
  index = static_cast<std::uint32_t>(strtoul(digits, &end, 10));
  return *end == 0;
}

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
             fi_info** infos) {
  const rank::Channel* channel = attach();
  if (channel == nullptr) return -FI_ENODATA;
  if (!settings_accepted(*channel)) return -FI_EINVAL;
  if (!names_a_nic(*channel)) return -FI_ENODATA;
  if (hints != nullptr && !hints_accepted(network_face, version, *hints, channel->header().inline_max)) {
    return -FI_ENODATA;
  }
  std::uint32_t endpoint = 0;
  if (!node_and_service_accepted(node, service, flags, endpoint)) return -FI_EINVAL;
  const char* target = (flags & FI_SOURCE) == 0 ? node : nullptr;
  const bool linked = hints != nullptr && (hints->caps & FI_PEER) != 0;
  // Where lnx links this provider, tagged messages are lnx's, and whoever asks for them shall find only lnx.
  const bool asks_for_messages = hints != nullptr && (hints->caps & FI_TAGGED) != 0;
  if (getenv("DRYFLY_LINKED") != nullptr && asks_for_messages && !linked) return -FI_ENODATA;
  bool any = true;
  std::uint32_t wanted = 0;
  if (!wanted_nic(*channel, node, flags, hints, any, wanted)) return -FI_ENODATA;

  const std::uint32_t nics = channel->welcome().nics_per_node;
  std::uint32_t own = 0;
  if (const int error = first_nic(*channel, own); error != 0) return error;
  if (any && linked) {
    // LINKx spreads its messages over every NIC that it is given; without a word of the user's it gets the rank's own.
    any = false;
    wanted = own;
    for (std::uint32_t others = 1; others < nics && !is_shown(wanted); ++others) wanted = (wanted + 1) % nics;
  }
  // The rank's own NIC comes first, unless the library takes turns by itself: it would skip every second NIC.
  if (getenv("DRYFLY_NICS_IN_ORDER") != nullptr) own = 0;
  fi_info* first = nullptr;
  fi_info** end = &first;
  for (std::uint32_t i = 0; i < nics; ++i) {
    const std::uint32_t nic = (own + i) % nics;
    if (!any && nic != wanted) continue;
    if (!is_shown(nic)) continue;
    *end = make_info(network_face, *channel, nic, hints);
    if (*end == nullptr || !fill_destination(**end, *channel, target, endpoint, hints)) {
      free_info(first);
      return -FI_ENOMEM;
    }
    end = &(*end)->next;
  }
  *infos = first;
  return first != nullptr ? 0 : -FI_ENODATA;
}

int get_node_info(std::uint32_t version, const char*, const char*, std::uint64_t, const fi_info* hints,
                  fi_info** infos) {
  const rank::Channel* channel = attach();
  if (channel == nullptr) return -FI_ENODATA;
  if (!settings_accepted(*channel)) return -FI_EINVAL;
  if (hints != nullptr && !hints_accepted(node_face, version, *hints, channel->header().inline_max)) {
    return -FI_ENODATA;
  }
  if (hints != nullptr && hints->domain_attr != nullptr && hints->domain_attr->name != nullptr &&
      strcmp(hints->domain_attr->name, node_face.domain) != 0) {
    return -FI_ENODATA;
  }
  *infos = make_info(node_face, *channel, channel->welcome().nic_index, hints);
  return *infos != nullptr ? 0 : -FI_ENOMEM;
}

}  // namespace dryfly::provider
