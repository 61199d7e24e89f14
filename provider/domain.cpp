#include "provider/domain.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/atomic.hpp"
#include "provider/av.hpp"
#include "provider/cntr.hpp"
#include "provider/collective.hpp"
#include "provider/cq.hpp"
#include "provider/deferred.hpp"
#include "provider/device_memory.hpp"
#include "provider/ep.hpp"
#include "provider/info.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/mr.hpp"
#include "provider/peer.hpp"
#include "provider/process.hpp"
#include "provider/service.hpp"
#include "provider/traffic_class.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

int close_domain(fid* fid) {
  const Session session;
  auto* domain = object_of<Domain>(fid);
  if (domain->users != 0) return -FI_EBUSY;
  --domain->fabric->users;
  if (domain->registers) domain->registrations.close();
  domain->peer_copies.close();
  free(domain);
  return 0;
}

int control(fid* fid, int what, void* argument) { return control_work(*object_of<Domain>(fid), what, argument); }

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_domain,
    .bind = unsupported,
    .control = control,
    .ops_open = unsupported,
};

fi_ops_domain domain_calls = {
    .size = sizeof(fi_ops_domain),
    .av_open = open_address_vector,
    .cq_open = open_completion_queue,
    .endpoint = open_endpoint,
    .scalable_ep = unsupported,
    .cntr_open = open_counter,
    .poll_open = unsupported,
    .stx_ctx = unsupported,
    .srx_ctx = peer::open_shared_receive,
    .query_atomic = query_atomic,
    .query_collective = query_collective,
    .endpoint2 = open_endpoint_with_flags,
};

}  // namespace

int open_domain(fid_fabric* fid, fi_info* info, fid_domain** domain_fid, void* context) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  if (info->domain_attr == nullptr) return -FI_EINVAL;
  std::uint32_t nic = session.channel().welcome().nic_index;
  if (!auth_key_accepted(info->domain_attr->auth_key, info->domain_attr->auth_key_size)) return -FI_EINVAL;
  AuthKey key = job_auth_key();
  if (info->domain_attr->auth_key != nullptr) memcpy(&key, info->domain_attr->auth_key, sizeof(AuthKey));
  if (!service_known(session.channel(), key.service)) return -FI_EINVAL;
  const std::uint32_t label = info->domain_attr->tclass;
  std::uint8_t traffic_class = 0;
  if (!traffic_class_of(FI_TC_UNSPEC, label, traffic_class)) return -FI_EINVAL;
  const bool has_nics = object_of<Fabric>(fid)->face->domain == nullptr;
  if (has_nics && !nic_index_of(info->domain_attr->name, nic)) return -FI_EINVAL;
  if (nic >= session.channel().welcome().nics_per_node) return -FI_EINVAL;
  auto* domain = allocate<Domain>();
  if (domain == nullptr) return -FI_ENOMEM;
  domain->fid.fid.fclass = FI_CLASS_DOMAIN;
  domain->fid.fid.context = context;
  domain->fid.fid.ops = &object_calls;
  domain->fid.ops = &domain_calls;
  domain->fid.mr = &region_calls;
  domain->fabric = object_of<Fabric>(fid);
  domain->nic = nic;
  domain->traffic_class = label;
  domain->auth_key = key;
  domain->provider_keys = (info->domain_attr->mr_mode & FI_MR_PROV_KEY) != 0;
  // As there: with the provider's keys only, and where remote data has a size.
  domain->writes_data =
      session.state().environment.write_data && domain->provider_keys && info->domain_attr->cq_data_size != 0;
  const wire::RegistrationCosts& costs = session.channel().header().costs.registration;
  domain->registers = has_nics && costs.page_bytes != 0;
  // As there: a domain with FI_HMEM maps each buffer by whose memory it is, and others have one mapping for all.
  domain->knows_gpus = (info->caps & FI_HMEM) != 0 && knows_devices(session.state().environment);
  domain->maps_gpus = domain->knows_gpus && maps_for_processor(session.state().environment);
  // Its cache of mappings asks CUDA and Level Zero about a device's memory (cuda_mm_valid, ze_mm_valid), and not ROCr
  // (rocr_mm_valid). A library that has NICs move such memory has asked for FI_HMEM, whatever the one here has.
  const bool looks_up = has_nics && dryfly_gpu_lookup_ps != nullptr && device_interface() != FI_HMEM_ROCR;
  domain->lookup_ps = looks_up ? dryfly_gpu_lookup_ps() : 0;
  if (domain->registers) {
    const RegistrationSettings& settings = session.state().environment.registration;
    const bool paged = settings.on_demand_paging && (info->domain_attr->mr_mode & FI_MR_ALLOCATED) == 0;
    domain->registrations.open(costs, settings, paged);
  }
  if (!has_nics)
    domain->peer_copies.open(session.channel().header().copies.attaching, session.state().environment.registration);
  ++domain->fabric->users;
  *domain_fid = &domain->fid;
  return 0;
}

int open_domain_with_flags(fid_fabric* fabric, fi_info* info, fid_domain** domain, std::uint64_t flags, void* context) {
  if (flags != 0) return -FI_EBADFLAGS;
  return open_domain(fabric, info, domain, context);
}

}  // namespace dryfly::provider
