#include "gpu/settings.hpp"

#include <stdlib.h>
#include <string.h>

namespace dryfly::gpu {

namespace {

std::uint64_t number_of(const char* text, const char* name) {
  const std::size_t length = strlen(name);
  for (const char* at = text; at != nullptr; at = strchr(at, ' ')) {
    while (*at == ' ') ++at;
    if (strncmp(at, name, length) == 0 && at[length] == '=') return strtoull(at + length + 1, nullptr, 10);
  }
  return 0;
}

// The runtime's rule: devices are seen in the order of the mask, up to the first word that is no device; a device that
// is named twice leaves none.
int masked(const char* mask, int devices, int (&physical)[devices_max]) {
  int seen = 0;
  for (const char* at = mask; seen < devices_max;) {
    char* end = nullptr;
    const long device = strtol(at, &end, 10);
    if (end == at || (*end != ',' && *end != '\0') || device < 0 || device >= devices) return seen;
    for (int i = 0; i < seen; ++i) {
      if (physical[i] == device) return 0;
    }
    physical[seen++] = static_cast<int>(device);
    if (*end == '\0') return seen;
    at = end + 1;
  }
  return seen;
}

}  // namespace

Settings read_settings(const char* text, const char* mask) {
  Settings settings{};
  if (text == nullptr) return settings;
  const std::uint64_t given = number_of(text, "devices");
  const int devices = given < devices_max ? static_cast<int>(given) : devices_max;
  settings.memory_bytes = number_of(text, "memory");
  settings.call_ps = number_of(text, "call_ps");
  settings.query_ps = number_of(text, "query_ps");
  settings.allocation_ps = number_of(text, "allocation_ps");
  settings.copy = {number_of(text, "latency_ps"), number_of(text, "step_ps")};
  settings.local = {number_of(text, "local_latency_ps"), number_of(text, "local_step_ps")};
  settings.link_bytes_per_s = number_of(text, "link_rate");
  settings.peer_bytes_per_s = number_of(text, "peer_rate");
  settings.memory_bytes_per_s = number_of(text, "memory_rate");
  settings.pageable_bytes_per_s = number_of(text, "pageable_rate");
  if (mask != nullptr) {
    settings.devices = masked(mask, devices, settings.physical);
    return settings;
  }
  settings.devices = devices;
  for (int i = 0; i < devices; ++i) settings.physical[i] = i;
  return settings;
}

}  // namespace dryfly::gpu
