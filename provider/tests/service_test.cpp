// What the job's CXI service does not grant is refused at the call at which the machine's provider refuses it.
#include "provider/service.hpp"

#include <vector>

#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;

namespace {

constexpr std::uint32_t every_class = 0x3f;
constexpr std::uint8_t low_latency = 1;
constexpr std::uint8_t best_effort = 3;

// The run has a service for as long as this is there: number 5, VNIs 20 and 21, all classes, room for everything.
struct Service {
  Service() {
    settings = {};
    settings.id = 5;
    settings.vni_count = 2;
    settings.vnis[0] = 20;
    settings.vnis[1] = 21;
    settings.classes = every_class;
    for (std::uint32_t& most : settings.most) most = 1000;
    settings.triggered_operations = 504;
    settings.use_offset =
        static_cast<std::uint64_t>(reinterpret_cast<char*>(&use) - reinterpret_cast<char*>(fake_run().header));
  }
  ~Service() {
    settings = {};
    settings.triggered_operations = 504;
    fake_run().page->times.classes_refused = 0;
  }
  std::uint32_t& most(wire::Resource resource) { return settings.most[static_cast<std::uint32_t>(resource)]; }

  wire::ServiceUse use{};
  wire::ServiceSettings& settings = fake_run().header->service;
};

// An end-point of this key and class, and what enabling it gives.
int enabled(Rig& rig, const provider::AuthKey& key, std::uint32_t label = FI_TC_UNSPEC) {
  provider::AuthKey copy = key;
  fi_info* info = rig.info;
  info->domain_attr->auth_key = reinterpret_cast<std::uint8_t*>(&copy);
  info->domain_attr->auth_key_size = sizeof copy;
  info->tx_attr->tclass = label;
  fid_domain* domain = nullptr;
  int result = fi_domain(rig.fabric, info, &domain, nullptr);
  if (result == 0) {
    fid_ep* endpoint = nullptr;
    fid_av* addresses = nullptr;
    REQUIRE(fi_endpoint(domain, info, &endpoint, nullptr) == 0);
    fi_av_attr av{};
    REQUIRE(fi_av_open(domain, &av, &addresses, nullptr) == 0);
    REQUIRE(fi_ep_bind(endpoint, &addresses->fid, 0) == 0);
    result = fi_enable(endpoint);
    REQUIRE(fi_close(&endpoint->fid) == 0);
    REQUIRE(fi_close(&addresses->fid) == 0);
    REQUIRE(fi_close(&domain->fid) == 0);
  }
  info->domain_attr->auth_key = nullptr;
  info->domain_attr->auth_key_size = 0;
  info->tx_attr->tclass = FI_TC_UNSPEC;
  return result;
}

}  // namespace

TEST_CASE("a key of another service, or with a VNI that the service has not, is refused by fi_domain") {
  Rig rig;
  Service service;
  CHECK(enabled(rig, {.service = 5, .vni = 21}) == 0);
  CHECK(enabled(rig, {.service = 5, .vni = 22}) == -FI_EINVAL);
  CHECK(enabled(rig, {.service = 6, .vni = 20}) == -FI_EINVAL);
  service.settings.vni_count = 0;
  service.settings.vni_least = 64;
  service.settings.vni_most = 127;
  CHECK(enabled(rig, {.service = 5, .vni = 64}) == 0);
  CHECK(enabled(rig, {.service = 5, .vni = 128}) == -FI_EINVAL);
}

TEST_CASE(
    "a class that is not granted travels as best effort, and where that is not granted either the end-point fails") {
  Rig rig;
  Service service;
  const rank::Channel& channel = *rank::Channel::get();
  std::uint8_t traffic_class = low_latency;
  CHECK(provider::granted_class(channel, 20, traffic_class));
  CHECK(traffic_class == low_latency);
  service.settings.classes = 1U << best_effort;
  CHECK(provider::granted_class(channel, 20, traffic_class));
  CHECK(traffic_class == best_effort);
  CHECK(fake_run().page->times.classes_refused == 1U << low_latency);
  CHECK(enabled(rig, {.service = 5, .vni = 20}, FI_TC_LOW_LATENCY) == 0);
  service.settings.classes = 1U << low_latency;
  CHECK(enabled(rig, {.service = 5, .vni = 20}, FI_TC_BULK_DATA) == -FI_EINVAL);
}

TEST_CASE("the end-point beyond a limit is refused, takes nothing, and one that closes makes room") {
  Rig rig;
  Service service;
  const rank::Channel& channel = *rank::Channel::get();
  using wire::Resource;
  for (const auto& [resource, each] : std::vector<std::pair<Resource, std::uint32_t>>{{Resource::event_queues, 4},
                                                                                      {Resource::transmit_queues, 1},
                                                                                      {Resource::target_queues, 1},
                                                                                      {Resource::portal_entries, 3}}) {
    service.most(resource) = 2 * each;
    CHECK(provider::take_endpoint(channel, 1) == 0);
    CHECK(provider::take_endpoint(channel, 1) == 0);
    CHECK(provider::take_endpoint(channel, 1) == -FI_ENOSPC);
    CHECK(provider::take_endpoint(channel, 2) == 0);  // another NIC
    provider::give_back_endpoint(channel, 2);
    provider::give_back_endpoint(channel, 1);
    CHECK(provider::take_endpoint(channel, 1) == 0);
    provider::give_back_endpoint(channel, 1);
    provider::give_back_endpoint(channel, 1);
    for (const auto& used : service.use.of_nic[1]) CHECK(used.load() == 0);
    service.most(resource) = 1000;
  }
}

TEST_CASE("one counter more than the service has is refused by fi_cntr_open") {
  Rig rig;
  Service service;
  service.most(wire::Resource::counters) = 2;
  std::vector<fid_cntr*> counters(2);
  for (fid_cntr*& counter : counters) REQUIRE(fi_cntr_open(rig.domain, nullptr, &counter, nullptr) == 0);
  fid_cntr* one_more = nullptr;
  CHECK(fi_cntr_open(rig.domain, nullptr, &one_more, nullptr) == -FI_EDOMAIN);
  CHECK(fi_close(&counters[0]->fid) == 0);
  CHECK(fi_cntr_open(rig.domain, nullptr, &counters[0], nullptr) == 0);
  for (fid_cntr* counter : counters) CHECK(fi_close(&counter->fid) == 0);
}
