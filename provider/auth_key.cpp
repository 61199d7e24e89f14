#include "provider/auth_key.hpp"

#include <stdlib.h>
#include <string.h>

#include "provider/log.hpp"
#include "provider/process.hpp"
#include "provider/service.hpp"

namespace dryfly::provider {

namespace {

constexpr std::uint32_t default_service = 1;
constexpr unsigned long most_vni = 0xffff;

unsigned long first_number(const char* name, unsigned long otherwise, unsigned long most) {
  const char* text = getenv(name);
  if (text == nullptr || *text < '0' || *text > '9') return otherwise;
  const unsigned long value = strtoul(text, nullptr, 10);
  return value >= 1 && value <= most ? value : otherwise;
}

}  // namespace

bool auth_key_accepted(const void* key, std::size_t size) {
  if (size == 0 && key == nullptr) return true;
  if (size != sizeof(AuthKey)) {
    log("fi_getinfo: an auth_key of %zu bytes is not accepted; a service and a VNI are %zu", size, sizeof(AuthKey));
    return false;
  }
  if (key == nullptr) return true;
  AuthKey asked{};
  memcpy(&asked, key, sizeof asked);
  if (asked.vni == 0) {
    log("fi_getinfo: an auth_key with VNI 0 is not accepted");
    return false;
  }
  const rank::Channel* channel = rank::Channel::get();
  return channel == nullptr || key_granted(*channel, asked);
}

AuthKey job_auth_key() {
  unsigned long vni = process().environment.default_network;
  unsigned long service = default_service;
  if (const rank::Channel* channel = rank::Channel::get(); channel != nullptr && channel->header().service.id != 0) {
    const wire::ServiceSettings& of_job = channel->header().service;
    service = of_job.id;
    if (of_job.vni_count != 0) vni = of_job.vnis[0];
    if (of_job.vni_count == 0 && of_job.restricts_range()) vni = of_job.vni_least;
  }
  return {.service = static_cast<std::uint32_t>(first_number("SLINGSHOT_SVC_IDS", service, UINT32_MAX)),
          .vni = static_cast<std::uint16_t>(first_number("SLINGSHOT_VNIS", vni, most_vni))};
}

bool copy_auth_key(const void* key, std::uint8_t*& copy, std::size_t& size) {
  if (key == nullptr) return true;
  copy = static_cast<std::uint8_t*>(malloc(sizeof(AuthKey)));
  if (copy == nullptr) return false;
  memcpy(copy, key, sizeof(AuthKey));
  size = sizeof(AuthKey);
  return true;
}

bool same_auth_key(const AuthKey& domain, const void* endpoint_key) {
  if (endpoint_key == nullptr) return true;
  AuthKey asked{};
  memcpy(&asked, endpoint_key, sizeof asked);
  if (asked.service == domain.service && asked.vni == domain.vni) return true;
  log("fi_endpoint: its auth_key (service %u, VNI %u) is not its domain's (%u, %u)", asked.service, asked.vni,
      domain.service, domain.vni);
  return false;
}

}  // namespace dryfly::provider
