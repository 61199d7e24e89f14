#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "provider/attributes.hpp"
#include "provider/auth_key.hpp"
#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;

namespace {

std::vector<std::string> domain_names(const fi_info* info) {
  std::vector<std::string> names;
  for (; info != nullptr; info = info->next) names.emplace_back(info->domain_attr->name);
  return names;
}

// Whether hints that differ from an empty set by what `ask` does are accepted.
template <class Ask>
bool accepted(Ask ask) {
  Hints hints;
  ask(hints);
  fi_info* info = nullptr;
  const int error = get_info(&hints.info, &info);
  release(info);
  CHECK((error == 0 || error == -FI_ENODATA));
  return error == 0;
}

}  // namespace

TEST_CASE("outside a run the provider quietly has nothing to offer") {
  fake_run().present = false;
  fi_info* info = nullptr;
  CHECK(get_info(nullptr, &info) == -FI_ENODATA);
  fake_run().present = true;
}

TEST_CASE("each NIC of the node is an fi_info, and the rank's own comes first") {
  fi_info* info = nullptr;
  REQUIRE(get_info(nullptr, &info) == 0);
  // Four NICs, the rank's own is number 2.
  CHECK(domain_names(info) == std::vector<std::string>{"cxi2", "cxi3", "cxi0", "cxi1"});
  release(info);
}

TEST_CASE("a NIC can be asked for by its name") {
  Hints hints;
  char name[] = "cxi3";
  hints.domain.name = name;
  fi_info* info = nullptr;
  REQUIRE(get_info(&hints.info, &info) == 0);
  CHECK(domain_names(info) == std::vector<std::string>{"cxi3"});
  release(info);
  info = nullptr;
  REQUIRE(get_info(nullptr, &info, "cxi1", FI_SOURCE) == 0);
  CHECK(domain_names(info) == std::vector<std::string>{"cxi1"});
  release(info);
  CHECK(get_info(nullptr, &info, "cxi4", FI_SOURCE) == -FI_ENODATA);
}

TEST_CASE("a node and a service without FI_SOURCE name an end-point of this node; the hints may have an address") {
  fi_info* info = nullptr;
  REQUIRE(get_info(nullptr, &info, "cxi1", 0, "5") == 0);
  REQUIRE(info->dest_addrlen == sizeof(provider::Address));
  const auto* address = static_cast<const provider::Address*>(info->dest_addr);
  CHECK(address->endpoint == wire::make_address(1, 5));
  CHECK(address->nic == 1);
  release(info);
  Hints hints;
  provider::Address elsewhere{wire::make_address(3, 2), 0};
  hints.info.dest_addr = &elsewhere;
  hints.info.dest_addrlen = sizeof elsewhere;
  REQUIRE(get_info(&hints.info, &info) == 0);
  REQUIRE(info->dest_addrlen == sizeof elsewhere);
  CHECK(static_cast<const provider::Address*>(info->dest_addr)->endpoint == elsewhere.endpoint);
  release(info);
  REQUIRE(get_info(nullptr, &info, "cxi1", FI_SOURCE) == 0);
  CHECK(info->dest_addr == nullptr);
  release(info);
  CHECK(get_info(nullptr, &info, "cxi0", 0, "128") == -FI_EINVAL);
  CHECK(get_info(nullptr, &info, "cxi0", 0, "http") == -FI_EINVAL);
  CHECK(get_info(nullptr, &info, nullptr, FI_SOURCE) == -FI_EINVAL);
}

TEST_CASE("the attributes are those of the machine's provider") {
  fi_info* info = nullptr;
  REQUIRE(get_info(nullptr, &info) == 0);
  CHECK(info->fabric_attr->prov_name == nullptr);
  CHECK(std::string(info->fabric_attr->name) == "cxi");
  CHECK(info->addr_format == FI_ADDR_CXI);
  CHECK(info->mode == 0);
  CHECK(info->ep_attr->type == FI_EP_RDM);
  CHECK(info->ep_attr->max_msg_size == 0xffffffffU);
  CHECK(info->ep_attr->mem_tag_format == 0x0000aaaaaaaaaaaaU);  // 48 bits
  CHECK(info->tx_attr->inject_size == 192);
  CHECK(info->tx_attr->iov_limit == 1);
  CHECK(info->domain_attr->mr_mode == (FI_MR_ENDPOINT | FI_MR_ALLOCATED));
  CHECK(info->domain_attr->mr_key_size == 4);
  CHECK(info->domain_attr->cq_data_size == 8);
  CHECK(info->domain_attr->data_progress == FI_PROGRESS_MANUAL);
  release(info);
}

TEST_CASE("the hints of MPICH are met, once it has given up the orders that the machine does not keep") {
  Hints hints;
  hints.info.mode = FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_RX_CQ_DATA;
  hints.info.caps = provider::all_capabilities;
  hints.domain.threading = FI_THREAD_DOMAIN;
  hints.domain.control_progress = FI_PROGRESS_MANUAL;
  hints.domain.data_progress = FI_PROGRESS_MANUAL;
  hints.domain.resource_mgmt = FI_RM_ENABLED;
  hints.domain.av_type = FI_AV_TABLE;
  hints.domain.cq_data_size = 4;
  hints.transmit.op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
  hints.receive.op_flags = FI_COMPLETION;
  hints.receive.msg_order = FI_ORDER_SAS;
  hints.endpoint.type = FI_EP_RDM;
  hints.transmit.msg_order =
      FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
  fi_info* info = nullptr;
  CHECK(get_info(&hints.info, &info) == -FI_ENODATA);
  hints.transmit.msg_order = provider::message_orders;
  REQUIRE(get_info(&hints.info, &info) == 0);
  CHECK(info->domain_attr->threading == FI_THREAD_DOMAIN);
  CHECK(info->tx_attr->op_flags == (FI_COMPLETION | FI_DELIVERY_COMPLETE));
  release(info);
}

TEST_CASE("what cannot be done is refused, one hint at a time") {
  CHECK(accepted([](Hints&) {}));
  CHECK_FALSE(accepted([](Hints& h) { h.info.caps = FI_MSG | FI_MULTICAST; }));
  CHECK_FALSE(accepted([](Hints& h) { h.info.addr_format = FI_SOCKADDR_IN; }));
  CHECK_FALSE(accepted([](Hints& h) { h.endpoint.type = FI_EP_DGRAM; }));
  CHECK_FALSE(accepted([](Hints& h) { h.endpoint.max_msg_size = std::size_t{1} << 32; }));
  CHECK_FALSE(accepted([](Hints& h) { h.endpoint.mem_tag_format = std::uint64_t{1} << 48; }));
  CHECK_FALSE(accepted([](Hints& h) { h.domain.data_progress = FI_PROGRESS_AUTO; }));
  CHECK_FALSE(accepted([](Hints& h) { h.domain.cq_data_size = 16; }));
  CHECK_FALSE(accepted([](Hints& h) { h.transmit.inject_size = 193; }));
  CHECK_FALSE(accepted([](Hints& h) { h.transmit.iov_limit = 2; }));
  CHECK_FALSE(accepted([](Hints& h) { h.transmit.op_flags = FI_MULTI_RECV; }));
  CHECK_FALSE(accepted([](Hints& h) { h.receive.size = 15361; }));
  CHECK_FALSE(accepted([](Hints& h) { h.domain.mr_mode = FI_MR_ALLOCATED; }));
  char other[] = "tcp";
  CHECK_FALSE(accepted([&](Hints& h) { h.fabric.prov_name = other; }));
}

TEST_CASE("who names FI_MR_ENDPOINT alone is an old application that means FI_MR_ALLOCATED too") {
  Hints hints;
  hints.domain.mr_mode = FI_MR_ENDPOINT;
  fi_info* info = nullptr;
  REQUIRE(get_info(&hints.info, &info) == 0);
  CHECK(info->domain_attr->mr_mode == (FI_MR_ENDPOINT | FI_MR_ALLOCATED));
  release(info);
}

TEST_CASE("order of writes and FI_SOURCE are for who asks for them") {
  Hints hints;
  fi_info* info = nullptr;
  REQUIRE(get_info(&hints.info, &info) == 0);
  CHECK(info->tx_attr->msg_order == 0);
  CHECK((info->caps & FI_SOURCE) == 0);
  CHECK((info->rx_attr->caps & FI_SOURCE) == 0);
  release(info);
  hints.transmit.msg_order = FI_ORDER_SAS | FI_ORDER_WAW;
  hints.info.caps = FI_TAGGED | FI_SOURCE;
  hints.domain.mr_mode = 0;
  REQUIRE(get_info(&hints.info, &info) == 0);
  CHECK(info->tx_attr->msg_order == (FI_ORDER_SAS | FI_ORDER_WAW));
  CHECK((info->caps & FI_SOURCE) != 0);
  release(info);
}

TEST_CASE("memory-region modes do not matter to who asks for messages only") {
  CHECK(accepted([](Hints& h) {
    h.info.caps = FI_MSG | FI_TAGGED;
    h.domain.mr_mode = 0;
  }));
}

TEST_CASE("an application that takes the provider's keys gets them") {
  Hints hints;
  hints.domain.mr_mode |= FI_MR_PROV_KEY | FI_MR_VIRT_ADDR;
  fi_info* info = nullptr;
  REQUIRE(get_info(&hints.info, &info) == 0);
  // Offsets stay offsets: virtual addresses are not needed.
  CHECK(info->domain_attr->mr_mode == (FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY));
  CHECK(info->domain_attr->mr_key_size == 8);
  release(info);
}

TEST_CASE("asking for a primary capability grants both its directions") {
  Hints hints;
  hints.info.caps = FI_TAGGED;
  fi_info* info = nullptr;
  REQUIRE(get_info(&hints.info, &info) == 0);
  CHECK((info->caps & (FI_SEND | FI_RECV)) == (FI_SEND | FI_RECV));
  CHECK((info->caps & FI_DIRECTED_RECV) == 0);  // changes what a receive means, so only on request
  release(info);
}

TEST_CASE("the NIC description can be copied, as fi_dupinfo does") {
  fi_info* info = nullptr;
  REQUIRE(get_info(nullptr, &info) == 0);
  fid_nic* copy = nullptr;
  REQUIRE(fi_control(&info->nic->fid, FI_DUP, &copy) == 0);
  CHECK(copy->device_attr->name != info->nic->device_attr->name);
  CHECK(std::string(copy->device_attr->name) == "cxi2");
  CHECK(copy->link_attr->state == FI_LINK_UP);
  CHECK(std::string(copy->link_attr->network_type) == "HPC Ethernet");
  CHECK(copy->link_attr->mtu == 2112);
  CHECK(std::string(copy->device_attr->vendor_id) == "0x17db");
  CHECK(std::string(copy->device_attr->device_id) == "0x501");
  CHECK(copy->bus_attr->bus_type == FI_BUS_PCI);
  CHECK(copy->bus_attr->attr.pci.bus_id == 3);
  CHECK(fi_close(&copy->fid) == 0);
  release(info);
}

TEST_CASE("an fi_info carries the hint's auth key, and none where there is no hint") {
  fi_info* info = nullptr;
  REQUIRE(get_info(nullptr, &info) == 0);
  CHECK(info->domain_attr->auth_key == nullptr);
  CHECK(info->domain_attr->auth_key_size == 0);
  CHECK(info->ep_attr->auth_key_size == 0);
  release(info);

  Hints hints;
  provider::AuthKey key{.service = 5, .vni = 2000};
  hints.endpoint.auth_key = reinterpret_cast<std::uint8_t*>(&key);
  hints.endpoint.auth_key_size = sizeof key;
  REQUIRE(get_info(&hints.info, &info) == 0);
  REQUIRE(info->domain_attr->auth_key_size == sizeof key);  // that of the end-point alone is its domain's too
  provider::AuthKey given{};
  std::memcpy(&given, info->domain_attr->auth_key, sizeof given);
  CHECK(given.service == 5);
  CHECK(given.vni == 2000);
  release(info);
  hints.endpoint.auth_key = nullptr;
  hints.endpoint.auth_key_size = 0;
  hints.domain.auth_key = reinterpret_cast<std::uint8_t*>(&key);

  hints.domain.auth_key_size = 4;
  CHECK(get_info(&hints.info, &info) == -FI_ENODATA);
  hints.domain.auth_key_size = sizeof key;
  key.vni = 0;
  CHECK(get_info(&hints.info, &info) == -FI_ENODATA);
}

TEST_CASE("whoever asks for collectives gets them, with messages for both directions; nobody else does") {
  fi_info* info = nullptr;
  REQUIRE(get_info(nullptr, &info) == 0);
  CHECK((info->caps & FI_COLLECTIVE) == 0);
  release(info);
  Hints hints;
  hints.info.caps = FI_COLLECTIVE;
  REQUIRE(get_info(&hints.info, &info) == 0);
  constexpr std::uint64_t needed = FI_COLLECTIVE | FI_MSG | FI_SEND | FI_RECV;
  CHECK((info->caps & needed) == needed);
  CHECK((info->caps & (FI_TAGGED | FI_RMA)) == 0);
  release(info);
}

TEST_CASE("an end-point is on the virtual network of its domain") {
  Rig rig;  // whose domain has the job's key
  provider::AuthKey key{.service = 1, .vni = 11};
  Hints hints;
  hints.endpoint.auth_key = reinterpret_cast<std::uint8_t*>(&key);
  hints.endpoint.auth_key_size = sizeof key;
  fi_info* info = nullptr;
  REQUIRE(get_info(&hints.info, &info) == 0);
  fid_ep* endpoint = nullptr;
  CHECK(fi_endpoint(rig.domain, info, &endpoint, nullptr) == -FI_EINVAL);
  reinterpret_cast<provider::AuthKey*>(info->ep_attr->auth_key)->vni = 10;
  REQUIRE(fi_endpoint(rig.domain, info, &endpoint, nullptr) == 0);
  CHECK(fi_close(&endpoint->fid) == 0);
  release(info);
}

TEST_CASE("FI_HMEM is granted to who asks for it, and to nobody else") {
  Hints hints;
  hints.info.caps = FI_MSG | FI_HMEM;
  fi_info* info = nullptr;
  REQUIRE(get_info(&hints.info, &info) == 0);
  CHECK((info->caps & FI_HMEM) != 0);
  release(info);
  hints.info.caps = FI_MSG;
  REQUIRE(get_info(&hints.info, &info) == 0);
  CHECK((info->caps & FI_HMEM) == 0);
  release(info);
}

TEST_CASE("capabilities, modes and orders that the provider lacks are no match, each by itself") {
  const std::vector<std::uint64_t> capabilities{FI_MULTICAST, FI_VARIABLE_MSG};
  for (const std::uint64_t capability : capabilities) {
    CHECK_FALSE(accepted([&](Hints& h) { h.info.caps = FI_MSG | capability; }));
  }
  const std::vector<std::uint64_t> orders{FI_ORDER_RAW, FI_ORDER_WAR, FI_ORDER_RAS, FI_ORDER_SAR, FI_ORDER_SAW};
  for (const std::uint64_t order : orders) {
    CHECK_FALSE(accepted([&](Hints& h) { h.transmit.msg_order = order; }));
  }
  CHECK_FALSE(accepted([](Hints& h) { h.transmit.comp_order = FI_ORDER_STRICT; }));
  CHECK_FALSE(accepted([](Hints& h) { h.domain.control_progress = FI_PROGRESS_AUTO; }));
  CHECK_FALSE(accepted([](Hints& h) { h.domain.ep_cnt = provider::endpoints + 1; }));
}
