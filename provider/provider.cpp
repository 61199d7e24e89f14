// The one symbol that libfabric looks for, and the one that libshm-fi.so looks for.
#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>

#include "provider/attributes.hpp"
#include "provider/environment.hpp"
#include "provider/fabric.hpp"
#include "provider/info.hpp"

namespace {

// The simulator goes on until the process ends; there is nothing to give back.
void clean_up() {}

fi_provider description = {
    .version = dryfly::provider::provider_version,
    .fi_version = dryfly::provider::libfabric_version,
    .context = {},
    .name = dryfly::provider::provider_name,
    .getinfo = dryfly::provider::get_info,
    .fabric = dryfly::provider::open_fabric,
    .cleanup = clean_up,
};

fi_provider node_description = {
    .version = FI_VERSION(999, 0),  // libfabric has a shm of its own, and keeps the later of two
    .fi_version = dryfly::provider::libfabric_version,
    .context = {},
    .name = dryfly::provider::node_face.name,
    .getinfo = dryfly::provider::get_node_info,
    .fabric = dryfly::provider::open_node_fabric,
    .cleanup = clean_up,
};

}  // namespace

// For whoever starts ranks with this process's environment: the setting that they would refuse, or null.
extern "C" __attribute__((visibility("default"))) const char* dryfly_refused_setting(void) {
  static char reason[512];
  dryfly::provider::Environment environment;
  return dryfly::provider::read_environment(environment, reason, sizeof reason) ? nullptr : reason;
}

extern "C" __attribute__((visibility("default"))) fi_provider* fi_prov_ini(void) { return &description; }

extern "C" __attribute__((visibility("default"))) fi_provider* dryfly_node_provider(void) { return &node_description; }
