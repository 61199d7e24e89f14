#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;

TEST_CASE("end-points have their own addresses, with the NIC of their domain") {
  Rig rig;
  fid_ep* second = nullptr;
  REQUIRE(fi_endpoint(rig.domain, rig.info, &second, nullptr) == 0);
  provider::Address address{};
  std::size_t length = 0;
  CHECK(fi_getname(&second->fid, nullptr, &length) == -FI_ETOOSMALL);
  CHECK(length == 8);
  REQUIRE(fi_getname(&second->fid, &address, &length) == 0);
  CHECK(address.endpoint == wire::make_address(1, 1));  // rank 1, its second end-point
  CHECK(address.nic == 2);
  CHECK(fi_close(&second->fid) == 0);
}

TEST_CASE("a rank has 128 end-points and not one more") {
  Rig rig;
  std::vector<fid_ep*> more(127);
  for (auto& endpoint : more) REQUIRE(fi_endpoint(rig.domain, rig.info, &endpoint, nullptr) == 0);
  fid_ep* one_more = nullptr;
  CHECK(fi_endpoint(rig.domain, rig.info, &one_more, nullptr) == -FI_ENOSPC);
  for (auto* endpoint : more) CHECK(fi_close(&endpoint->fid) == 0);
}

TEST_CASE("opening an end-point tells the run its index and NIC") {
  Rig rig;
  fid_ep* second = nullptr;
  REQUIRE(fi_endpoint(rig.domain, rig.info, &second, nullptr) == 0);
  CHECK(fi_enable(second) == -FI_ENOAV);
  REQUIRE(fi_ep_bind(second, &rig.addresses->fid, 0) == 0);
  REQUIRE(fi_enable(second) == 0);
  CHECK(rig.last().kind == wire::CommandKind::open_endpoint);
  CHECK(rig.last().endpoint == 1);
  CHECK(rig.last().peer == 2);
  CHECK(fi_close(&second->fid) == 0);
}

TEST_CASE("what is in use cannot be closed") {
  Rig rig;
  CHECK(fi_close(&rig.queue->fid) == -FI_EBUSY);
  CHECK(fi_close(&rig.addresses->fid) == -FI_EBUSY);
  CHECK(fi_close(&rig.memory_counter->fid) == -FI_EBUSY);
  CHECK(fi_close(&rig.domain->fid) == -FI_EBUSY);
  CHECK(fi_close(&rig.fabric->fid) == -FI_EBUSY);
}

TEST_CASE("the address vector: looking up, removing, filling the gap") {
  Rig rig;
  provider::Address address{};
  std::size_t length = sizeof address;
  REQUIRE(fi_av_lookup(rig.addresses, 2, &address, &length) == 0);
  CHECK(address.endpoint == wire::make_address(2, 0));
  char text[64];
  length = sizeof text;
  CHECK(std::string(fi_av_straddr(rig.addresses, &address, text, &length)) == "fi_addr_cxi://rank2/endpoint0/cxi0");
  fi_addr_t two = 2;
  REQUIRE(fi_av_remove(rig.addresses, &two, 1, 0) == 0);
  CHECK(fi_av_lookup(rig.addresses, 2, &address, &length) == -FI_EINVAL);
  CHECK(fi_av_remove(rig.addresses, &two, 1, 0) == -FI_EINVAL);
  fi_addr_t handle = 0;
  const provider::Address again{wire::make_address(2, 1), 0};
  REQUIRE(fi_av_insert(rig.addresses, &again, 1, &handle, 0, nullptr) == 1);
  CHECK(handle == 2);
  const provider::Address stranger{wire::make_address(4, 0), 0};  // the run has ranks 0 to 3
  CHECK(fi_av_insert(rig.addresses, &stranger, 1, &handle, 0, nullptr) == 0);
  CHECK(handle == FI_ADDR_NOTAVAIL);
}

TEST_CASE("an event queue gives back what the application writes") {
  Rig rig;
  fid_eq* queue = nullptr;
  fi_eq_attr attributes{};
  attributes.wait_obj = FI_WAIT_UNSPEC;
  REQUIRE(fi_eq_open(rig.fabric, &attributes, &queue, nullptr) == 0);
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  CHECK(fi_eq_read(queue, &event, &entry, sizeof entry, 0) == -FI_EAGAIN);
  entry.data = 42;
  REQUIRE(fi_eq_write(queue, FI_NOTIFY, &entry, sizeof entry, 0) == sizeof entry);
  entry.data = 0;
  CHECK(fi_eq_read(queue, &event, &entry, 1, 0) == -FI_ETOOSMALL);
  REQUIRE(fi_eq_sread(queue, &event, &entry, sizeof entry, -1, 0) == sizeof entry);
  CHECK(event == FI_NOTIFY);
  CHECK(entry.data == 42);
  CHECK(fi_close(&queue->fid) == 0);
}

TEST_CASE("calls that the provider does not have answer -FI_ENOSYS") {
  Rig rig;
  fid_ep* endpoint = nullptr;
  CHECK(fi_scalable_ep(rig.domain, rig.info, &endpoint, nullptr) == -FI_ENOSYS);
  CHECK(fi_writedata(rig.endpoint, nullptr, 0, nullptr, 0, 0, 0, 0, nullptr) == -FI_ENOSYS);
  fi_cq_attr attributes{};
  attributes.wait_obj = FI_WAIT_FD;
  fid_cq* queue = nullptr;
  CHECK(fi_cq_open(rig.domain, &attributes, &queue, nullptr) == -FI_ENOSYS);
}

TEST_CASE("threads may call at the same time: every send goes out, whole and once") {
  Rig rig;
  constexpr int threads = 4;
  constexpr int sends = 500;
  std::vector<std::thread> senders;
  for (int thread = 0; thread < threads; ++thread) {
    senders.emplace_back([&, thread] {
      for (int i = 0; i < sends; ++i) {
        const auto tag = static_cast<std::uint64_t>(thread * sends + i);
        if (fi_tsend(rig.endpoint, &tag, sizeof tag, nullptr, 1, tag, nullptr) != 0) std::abort();
      }
    });
  }
  for (auto& sender : senders) sender.join();
  REQUIRE(rig.run.pushed.size() == threads * sends);
  std::vector<int> seen(threads * sends);
  for (const auto& pushed : rig.run.pushed) {
    std::uint64_t tag = 0;
    std::memcpy(&tag, pushed.payload.data(), sizeof tag);
    CHECK(tag == pushed.command.tag);
    ++seen[tag];
  }
  CHECK(seen == std::vector<int>(threads * sends, 1));
}

TEST_CASE("a child of the process is no rank: inherited objects answer with an error") {
  Rig rig;
  const pid_t child = fork();
  if (child == 0) {
    fi_cq_tagged_entry entry{};
    fi_info* info = nullptr;
    const bool refused = fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == -FI_EOPBADSTATE &&
                         fi_cq_read(rig.queue, &entry, 1) == -FI_EOPBADSTATE &&
                         get_info(nullptr, &info) == -FI_ENODATA && rig.run.pushed.empty();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
