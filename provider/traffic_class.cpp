#include "provider/traffic_class.hpp"

#include <rdma/fabric.h>
#include <stdlib.h>
#include <string.h>

#include "provider/log.hpp"

namespace dryfly::provider {

namespace {

struct Label {
  std::uint32_t label;
  const char* name;  // Cray MPICH's
  std::uint8_t traffic_class;
};

constexpr std::uint8_t best_effort = 3;

// As on the machine there is no label for network control.
constexpr Label labels[] = {
    {FI_TC_DEDICATED_ACCESS, "TC_DEDICATED_ACCESS", 0},
    {FI_TC_LOW_LATENCY, "TC_LOW_LATENCY", 1},
    {FI_TC_BULK_DATA, "TC_BULK_DATA", 2},
    {FI_TC_BEST_EFFORT, "TC_BEST_EFFORT", best_effort},
    {FI_TC_SCAVENGER, "TC_SCAVENGER", 4},
};

std::uint8_t class_by_default() {
  const char* wanted = getenv("MPICH_OFI_DEFAULT_TCLASS");
  if (wanted == nullptr || *wanted == 0) return best_effort;
  for (const Label& each : labels) {
    if (strcmp(wanted, each.name) == 0) return each.traffic_class;
  }
  log("MPICH_OFI_DEFAULT_TCLASS=%s is no traffic class; best effort is used", wanted);
  return best_effort;
}

}  // namespace

bool traffic_class_of(std::uint32_t endpoint_label, std::uint32_t domain_label, std::uint8_t& traffic_class) {
  const std::uint32_t label = endpoint_label != FI_TC_UNSPEC ? endpoint_label : domain_label;
  if (label == FI_TC_UNSPEC) {
    traffic_class = class_by_default();
    return true;
  }
  for (const Label& each : labels) {
    if (each.label != label) continue;
    traffic_class = each.traffic_class;
    return true;
  }
  log("there is no traffic class 0x%x", label);
  return false;
}

}  // namespace dryfly::provider
