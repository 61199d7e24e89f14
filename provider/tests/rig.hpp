// An end-point with everything it needs, opened through the provider's own tables, as libfabric does.
#pragma once

#include <doctest/doctest.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#include <cstdint>
#include <cstdlib>

#include "provider/av.hpp"
#include "provider/tests/fake_run.hpp"

extern "C" fi_provider* fi_prov_ini(void);

namespace dryfly::test {

inline void release(fi_info* info) {
  while (info != nullptr) {
    fi_info* next = info->next;
    fi_close(&info->nic->fid);
    free(info->domain_attr->name);
    free(info->domain_attr->auth_key);
    free(info->ep_attr->auth_key);
    free(info->fabric_attr->name);
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

// Hints with nothing asked.
struct Hints {
  fi_tx_attr transmit{};
  fi_rx_attr receive{};
  fi_ep_attr endpoint{};
  fi_domain_attr domain{};
  fi_fabric_attr fabric{};
  fi_info info{};
  Hints() {
    info.tx_attr = &transmit;
    info.rx_attr = &receive;
    info.ep_attr = &endpoint;
    info.domain_attr = &domain;
    info.fabric_attr = &fabric;
    domain.mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
  }
  Hints(const Hints&) = delete;
  Hints& operator=(const Hints&) = delete;
};

inline int get_info(const fi_info* hints, fi_info** info, const char* node = nullptr, std::uint64_t flags = 0,
                    const char* service = nullptr) {
  return fi_prov_ini()->getinfo(FI_VERSION(1, 5), node, service, flags, hints, info);
}

struct Rig {
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_av* addresses = nullptr;
  fid_cq* queue = nullptr;
  fid_cntr* memory_counter = nullptr;
  fid_ep* endpoint = nullptr;
  FakeRun& run = fake_run();

  explicit Rig(std::uint64_t queue_flags = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION, int region_mode = 0,
               std::uint64_t capabilities = 0) {
    run.pushed.clear();
    run.events.clear();
    run.payloads.clear();
    REQUIRE(get_info(nullptr, &info) == 0);
    info->tx_attr->op_flags = FI_COMPLETION;
    info->rx_attr->op_flags = FI_COMPLETION;
    info->domain_attr->mr_mode |= region_mode;
    info->caps |= capabilities;
    REQUIRE(fi_prov_ini()->fabric(info->fabric_attr, &fabric, nullptr) == 0);
    REQUIRE(fi_domain(fabric, info, &domain, nullptr) == 0);
    fi_av_attr av{};
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_TAGGED;
    cq.wait_obj = FI_WAIT_UNSPEC;
    fi_cntr_attr cntr{};
    cntr.events = FI_CNTR_EVENTS_COMP;
    cntr.wait_obj = FI_WAIT_UNSPEC;
    REQUIRE(fi_av_open(domain, &av, &addresses, nullptr) == 0);
    REQUIRE(fi_cq_open(domain, &cq, &queue, nullptr) == 0);
    REQUIRE(fi_cntr_open(domain, &cntr, &memory_counter, nullptr) == 0);
    REQUIRE(fi_endpoint(domain, info, &endpoint, nullptr) == 0);
    REQUIRE(fi_ep_bind(endpoint, &addresses->fid, 0) == 0);
    REQUIRE(fi_ep_bind(endpoint, &queue->fid, queue_flags) == 0);
    REQUIRE(fi_ep_bind(endpoint, &memory_counter->fid, FI_READ | FI_WRITE) == 0);
    REQUIRE(fi_enable(endpoint) == 0);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const provider::Address address{wire::make_address(rank, 0), 0};
      fi_addr_t handle = FI_ADDR_NOTAVAIL;
      REQUIRE(fi_av_insert(addresses, &address, 1, &handle, 0, nullptr) == 1);
      REQUIRE(handle == rank);
    }
    run.pushed.clear();
    run.idle_calls = 0;
    run.settle_calls = 0;
  }
  ~Rig() {
    CHECK(fi_close(&endpoint->fid) == 0);
    CHECK(fi_close(&queue->fid) == 0);
    CHECK(fi_close(&addresses->fid) == 0);
    CHECK(fi_close(&memory_counter->fid) == 0);
    CHECK(fi_close(&domain->fid) == 0);
    CHECK(fi_close(&fabric->fid) == 0);
    release(info);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  const wire::Command& last() const { return run.pushed.back().command; }
  // The answer to the latest command.
  wire::Event answer(wire::EventKind kind) const {
    wire::Event event{};
    event.kind = kind;
    event.context = last().context;
    return event;
  }
};

}  // namespace dryfly::test
