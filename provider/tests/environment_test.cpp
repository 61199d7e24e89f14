#include "provider/environment.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "provider/ep.hpp"
#include "provider/memory.hpp"
#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::provider;

namespace {

// Variables for as long as it lives.
class Settings {
 public:
  Settings(std::initializer_list<std::pair<std::string, std::string>> settings, const std::string& prefix = "FI_CXI_") {
    for (const auto& [name, value] : settings) {
      names_.push_back(prefix + name);
      setenv(names_.back().c_str(), value.c_str(), 1);
    }
  }
  ~Settings() {
    for (const std::string& name : names_) unsetenv(name.c_str());
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

 private:
  std::vector<std::string> names_;
};

std::string refusal() {
  Environment environment;
  char reason[512] = "";
  return read_environment(environment, reason, sizeof reason) ? "" : reason;
}

Environment accepted() {
  Environment environment;
  char reason[512] = "";
  CHECK_MESSAGE(read_environment(environment, reason, sizeof reason), reason);
  return environment;
}

}  // namespace

TEST_CASE("without settings the defaults are libfabric's, and the machine's sizes hold") {
  const Environment environment = accepted();
  CHECK(environment.match_mode == MatchMode::hardware);
  const wire::EndpointSettings settings = environment.settings(1024, environment.queue_size);
  CHECK(settings.eager_max == wire::far_future);
  CHECK(settings.rendezvous_head == wire::far_future);
  CHECK(settings.event_slots == 131'072);
  CHECK(settings.overflow_buffers == 3);
  CHECK(settings.request_buffers == 6);
}

TEST_CASE("the eager limit is the threshold and the smallest Get together") {
  const Settings set{{"RDZV_THRESHOLD", "4096"}, {"RDZV_GET_MIN", "0"}, {"RDZV_EAGER_SIZE", "0x400"}};
  const wire::EndpointSettings settings = accepted().settings(1024, 1024);
  CHECK(settings.eager_max == 4096);
  CHECK(settings.rendezvous_head == 1024);
}

TEST_CASE("thresholds of zero, as libraries for accelerators set them, are raised to the inline size") {
  const Settings set{{"RDZV_THRESHOLD", "0"}, {"RDZV_GET_MIN", "0"}, {"RDZV_EAGER_SIZE", "0"}};
  CHECK(accepted().eager_max() == 192);
  CHECK(accepted().rendezvous_eager_size == 0);
}

TEST_CASE("the event queue holds twice the receives, or what the completion queue asks for") {
  const Settings set{{"DEFAULT_RX_SIZE", "16"}, {"DEFAULT_CQ_SIZE", "1"}};
  const Environment environment = accepted();
  CHECK(environment.settings(environment.receive_size, environment.queue_size).event_slots == 2 * 16 + 2 + 32 + 2);
  CHECK(environment.settings(environment.receive_size, 5000).event_slots == 5000);
}

TEST_CASE("what libfabric would not take is refused in its words") {
  const auto refused = [](const char* name, const char* value) {
    const Settings set{{name, value}};
    return refusal();
  };
  CHECK(
      refused("RX_MATCH_MODE", "firmware") ==
      "FI_CXI_RX_MATCH_MODE=firmware: Unrecognized rx_match_mode: firmware; accepted is hardware, software or hybrid");
  CHECK(refused("RX_MATCH_MODE", "HYBRID").empty());
  CHECK(refused("RDZV_PROTO", "tcp") ==
        "FI_CXI_RDZV_PROTO=tcp: Unrecognized rendezvous protocol: tcp; accepted is default, alt_read or alt-read");
  CHECK(refused("RDZV_THRESHOLD", "20M") == "FI_CXI_RDZV_THRESHOLD=20M: accepted is a number of at least 0");
  CHECK(refused("RDZV_THRESHOLD", "-1") == "FI_CXI_RDZV_THRESHOLD=-1: accepted is a number of at least 0");
  CHECK(refused("RDZV_THRESHOLD", "99999999999999999999") ==
        "FI_CXI_RDZV_THRESHOLD=99999999999999999999: accepted is a number of at most 9223372036854775807");
  CHECK(refused("RDZV_THRESHOLD", "20000000") ==
        "FI_CXI_RDZV_THRESHOLD=20000000: Invalid rdzv_threshold: 20000000; accepted is at most the 12582912 of "
        "FI_CXI_OFLOW_BUF_SIZE");
  CHECK(refused("RDZV_GET_MIN", "12582912") ==
        "FI_CXI_RDZV_GET_MIN=12582912: Invalid rdzv_get_min: 12582912; accepted is at most the 12582912 of "
        "FI_CXI_OFLOW_BUF_SIZE less the 16384 of FI_CXI_RDZV_THRESHOLD");
  CHECK(refused("OFLOW_BUF_SIZE", "1000").starts_with("FI_CXI_OFLOW_BUF_SIZE=1000: Invalid rdzv_threshold: 16384"));
  CHECK(refused("DEFAULT_CQ_SIZE", "0") == "FI_CXI_DEFAULT_CQ_SIZE=0: Default CQ size invalid: accepted is 1 and more");
  CHECK(refused("DEFAULT_TX_SIZE", "15") ==
        "FI_CXI_DEFAULT_TX_SIZE=15: Default TX size invalid: accepted is 16 to 16384");
  CHECK(refused("DEFAULT_RX_SIZE", "16000") ==
        "FI_CXI_DEFAULT_RX_SIZE=16000: Default RX size invalid: accepted is 16 to 15360");
  CHECK(refused("CQ_FILL_PERCENT", "101") ==
        "FI_CXI_CQ_FILL_PERCENT=101: CQ fill percent invalid: accepted is 1 to 100");
  // What changes nothing here is read all the same.
  CHECK(refused("DISABLE_CQ_HUGETLB", "foo").starts_with("FI_CXI_DISABLE_CQ_HUGETLB=foo: failed to parse bool var"));
  CHECK(refused("DISABLE_CQ_HUGETLB", "1").empty());
  CHECK(refused("RNR_MAX_TIMEOUT_US", "x") == "FI_CXI_RNR_MAX_TIMEOUT_US=x: accepted is a number of at least 0");
  CHECK(
      refused("DEVICE_NAME", "cxi0,hsn1") ==
      "FI_CXI_DEVICE_NAME=cxi0,hsn1: Failed to validate device name: name=cxi0,hsn1 rc=-22; accepted is a list such as "
      "cxi0,cxi1");
  CHECK(refused("DEVICE_NAME", "cxi01").find("Failed to validate") != std::string::npos);
  CHECK(refused("DEVICE_NAME", "cxi0,cxi12").empty());
  CHECK(refused("DEFAULT_VNI", "65536") == "FI_CXI_DEFAULT_VNI=65536: accepted is a VNI of 1 to 65535");
  CHECK(refused("RGET_TC", "bulk") ==
        "FI_CXI_RGET_TC=bulk: Unrecognized rget_tc: bulk; accepted is BEST_EFFORT, LOW_LATENCY, DEDICATED_ACCESS or "
        "BULK_DATA");
  CHECK(refused("ZBCOLL_RADIX", "1") == "FI_CXI_ZBCOLL_RADIX=1: Invalid zbcoll_radix=1: accepted is 2 and more");
  CHECK(refused("DISABLE_NON_INJECT_MSG_IDC", "maybe") ==
        "FI_CXI_DISABLE_NON_INJECT_MSG_IDC=maybe: failed to parse bool var disable_non_inject_msg_idc=maybe; accepted "
        "is 1, true, yes, on, 0, false, "
        "no or off");
}

TEST_CASE("what a launcher lists for the job are numbers") {
  const auto refused = [](const char* name, const char* value) {
    const Settings set({{name, value}}, "SLINGSHOT_");
    return refusal();
  };
  CHECK(refused("VNIS", "1024,1025").empty());
  CHECK(refused("VNIS", "").empty());
  for (const char* value : {"abc", "0", "65536", "1024,", "1024,x", "1024;1025", "-1"}) {
    CHECK(refused("VNIS", value) == std::string("SLINGSHOT_VNIS=") + value +
                                        ": accepted is VNIs with commas, each of 1 to 65535, such as 1024,1025");
  }
  CHECK(refused("SVC_IDS", "2,2").empty());
  CHECK(refused("SVC_IDS", "two").starts_with("SLINGSHOT_SVC_IDS=two: accepted is numbers of services"));
}

TEST_CASE("values that libfabric adjusts are adjusted") {
  const Settings set{{"SW_RX_TX_INIT_MAX", "1"}, {"CTRL_RX_EQ_MAX_SIZE", "0"}, {"FC_RETRY_USEC_DELAY", "0"}};
  const Environment environment = accepted();
  CHECK(environment.software_gets == 64);
  CHECK(environment.control_bytes == 64 << 20);
  CHECK(environment.retry_delay_us == 0);
}

TEST_CASE("the queue for control messages has an event for each process of the job, in pages of 64") {
  const auto slots = [] { return accepted().settings(1024, 1024).control_slots; };
  CHECK(slots() == 256);
  setenv("FI_UNIVERSE_SIZE", "1000", 1);
  CHECK(slots() == 1024);
  {
    const Settings set{{"CTRL_RX_EQ_MAX_SIZE", "5000"}};
    CHECK(slots() == 128);
  }
  {
    const Settings set{{"MR_MATCH_EVENTS", "1"}};
    CHECK(slots() == 1280);
  }
  unsetenv("FI_UNIVERSE_SIZE");
}

TEST_CASE("how software asks for large messages goes to the NIC with the end-point") {
  const Settings set{{"RGET_TC", "LOW_LATENCY"}, {"SW_RX_TX_INIT_MAX", "100"}, {"RDZV_PROTO", "alt-read"},
                     {"LLRING_MODE", "never"},   {"HYBRID_PREEMPTIVE", "1"},   {"DEFAULT_VNI", "77"},
                     {"MSG_LOSSLESS", "1"}};
  test::Rig rig;
  rig.run.pushed.clear();
  fid_ep* endpoint = nullptr;
  REQUIRE(fi_endpoint(rig.domain, rig.info, &endpoint, nullptr) == 0);
  REQUIRE(fi_ep_bind(endpoint, &rig.addresses->fid, 0) == 0);
  REQUIRE(fi_enable(endpoint) == 0);
  wire::EndpointSettings told{};
  std::memcpy(&told, rig.run.pushed.front().payload.data(), sizeof told);
  CHECK(told.software_class == 1);
  CHECK(told.software_gets == 100);
  CHECK(told.network == 77);
  using namespace wire::endpoint_flag;
  CHECK(told.flags == (notifies_done | commands_fetched | preempt_on_overflow | lossless));
  CHECK(fi_close(&endpoint->fid) == 0);
}

TEST_CASE("a list of devices restricts the NICs that there are") {
  fi_info* info = nullptr;
  {
    const Settings set{{"DEVICE_NAME", "cxi0,cxi3"}};
    REQUIRE(test::get_info(nullptr, &info) == 0);
    CHECK(std::string(info->domain_attr->name) == "cxi3");  // the rank's own is number 2
    CHECK(std::string(info->next->domain_attr->name) == "cxi0");
    CHECK(info->next->next == nullptr);
    test::release(info);
    CHECK(test::get_info(nullptr, &info, "cxi1", FI_SOURCE) == -FI_ENODATA);
  }
  const Settings set{{"DEVICE_NAME", "cxi7"}};
  CHECK(test::get_info(nullptr, &info) == -FI_ENODATA);
}

TEST_CASE("on-demand paging takes allocated memory out of what a region needs") {
  const auto modes = [](int asked) {
    test::Hints hints;
    hints.domain.mr_mode = asked;
    fi_info* info = nullptr;
    REQUIRE(test::get_info(&hints.info, &info) == 0);
    const int mode = info->domain_attr->mr_mode;
    test::release(info);
    return mode;
  };
  const Settings set{{"ODP", "1"}};
  CHECK(modes(FI_MR_ENDPOINT) == FI_MR_ENDPOINT);
  CHECK(modes(FI_MR_ENDPOINT | FI_MR_ALLOCATED) == (FI_MR_ENDPOINT | FI_MR_ALLOCATED));
  const Settings forced{{"FORCE_ODP", "1"}};
  CHECK(modes(FI_MR_ENDPOINT | FI_MR_ALLOCATED) == FI_MR_ENDPOINT);
}

TEST_CASE("whoever is told to say something again waits before") {
  for (const std::uint64_t delay_us : {1000U, 5U}) {
    const Settings set{{"FC_RETRY_USEC_DELAY", std::to_string(delay_us)}};
    test::Rig rig;
    wire::Event event{};
    event.kind = wire::EventKind::work;
    event.work_kind = 11;
    rig.run.add(event);
    const std::uint64_t start = rig.run.now_ps();
    fi_cq_tagged_entry entry{};
    CHECK(fi_cq_read(rig.queue, &entry, 1) == -FI_EAGAIN);
    REQUIRE(rig.last().kind == wire::CommandKind::work_done);
    CHECK(rig.last().at_ps - start == delay_us * 1'000'000);
  }
}

TEST_CASE("only commands to optimized regions have room for their payload") {
  const auto by_dma = [](std::uint64_t key) {
    test::Rig rig;
    REQUIRE(fi_write(rig.endpoint, "a", 1, nullptr, 1, 0, key, nullptr) == 0);
    const bool write = (rig.last().flags & wire::command_flag::by_dma) != 0;
    std::int64_t operand = 1;
    REQUIRE(fi_atomic(rig.endpoint, &operand, 1, nullptr, 1, 0, key, FI_INT64, FI_SUM, nullptr) == 0);
    CHECK(write == ((rig.last().flags & wire::command_flag::by_dma) != 0));
    return write;
  };
  CHECK(!by_dma(99));
  CHECK(by_dma(100));
  const Settings set{{"OPTIMIZED_MRS", "0"}};
  CHECK(by_dma(99));
}

TEST_CASE("fi_getinfo refuses them too, and shows the queue depths that are set") {
  fi_info* info = nullptr;
  {
    const Settings set{{"RX_MATCH_MODE", "firmware"}};
    CHECK(test::get_info(nullptr, &info) == -FI_EINVAL);
  }
  {
    const Settings set{{"DEFAULT_TX_SIZE", "2048"}, {"DEFAULT_RX_SIZE", "512"}};
    REQUIRE(test::get_info(nullptr, &info) == 0);
    CHECK(info->tx_attr->size == 2048);
    CHECK(info->rx_attr->size == 512);
    test::release(info);
  }
}

TEST_CASE("writes to optimized regions go without order where the end-point asks for none") {
  const auto is_restricted = [](std::uint64_t order, std::uint64_t key) {
    test::Rig rig;
    object_of<Endpoint>(rig.endpoint)->order = order;
    REQUIRE(fi_write(rig.endpoint, "a", 1, nullptr, 1, 0, key, nullptr) == 0);
    return (rig.last().flags & wire::command_flag::unordered) != 0;
  };
  CHECK(is_restricted(FI_ORDER_SAS, 5));
  CHECK(!is_restricted(FI_ORDER_SAS, 100));
  CHECK(!is_restricted(FI_ORDER_SAS | FI_ORDER_WAW, 5));
  const Settings set{{"OPTIMIZED_MRS", "0"}};
  CHECK(!is_restricted(FI_ORDER_SAS, 5));
}

TEST_CASE("without inline commands only injected payloads are inside them") {
  const Settings set{{"DISABLE_NON_INJECT_MSG_IDC", "1"}};
  test::Rig rig;
  REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
  CHECK((rig.last().flags & wire::command_flag::by_dma) != 0);
  REQUIRE(fi_tinject(rig.endpoint, "a", 1, 1, 0) == 0);
  CHECK((rig.last().flags & wire::command_flag::by_dma) == 0);
}

TEST_CASE("nor are operands of atomics but of injected ones") {
  const auto by_dma = [](bool inject) {
    test::Rig rig;
    std::int64_t operand = 1;
    if (inject) {
      REQUIRE(fi_inject_atomic(rig.endpoint, &operand, 1, 1, 0, 5, FI_INT64, FI_SUM) == 0);
    } else {
      REQUIRE(fi_atomic(rig.endpoint, &operand, 1, nullptr, 1, 0, 5, FI_INT64, FI_SUM, nullptr) == 0);
    }
    return (rig.last().flags & wire::command_flag::by_dma) != 0;
  };
  CHECK(!by_dma(false));
  const Settings set{{"DISABLE_NON_INJECT_AMO_IDC", "1"}};
  CHECK(by_dma(false));
  CHECK(!by_dma(true));
}

TEST_CASE("the cache of registrations is set as libfabric reads it") {
  CHECK(accepted().registration.monitor == MemoryMonitor::memhooks);
  CHECK(accepted().registration.ranges_max == 4096);
  CHECK(accepted().registration.bytes_max == UINT64_MAX);
  const auto with = [](std::initializer_list<std::pair<std::string, std::string>> settings) {
    const Settings all(settings, "FI_MR_");
    return accepted().registration;
  };
  CHECK(with({{"CACHE_MONITOR", "uffd"}}).monitor == MemoryMonitor::userfaultfd);
  CHECK(with({{"CACHE_MONITOR", "kdreg2"}}).monitor == MemoryMonitor::kdreg2);
  CHECK(with({{"CACHE_MAX_COUNT", "0x10"}}).ranges_max == 16);
  CHECK(with({{"CACHE_MAX_COUNT", "0"}}).ranges_max == 0);
  CHECK(with({{"CACHE_MAX_COUNT", "0"}, {"CACHE_MONITOR", "disabled"}}).ranges_max == 0);
  CHECK(with({{"CACHE_MAX_SIZE", "-1"}}).bytes_max == UINT64_MAX);
  CHECK(with({{"CACHE_MAX_SIZE", "4096"}}).bytes_max == 4096);
}

TEST_CASE("wrong settings of the cache are refused") {
  const auto refused = [](std::initializer_list<std::pair<std::string, std::string>> settings) {
    const Settings all(settings, "FI_MR_");
    return refusal();
  };
  CHECK(refused({{"CACHE_MONITOR", "Memhooks"}}) ==
        "FI_MR_CACHE_MONITOR=Memhooks: accepted are userfaultfd, uffd, memhooks, kdreg2 and disabled");
  CHECK(refused({{"CACHE_MAX_COUNT", "many"}}) == "FI_MR_CACHE_MAX_COUNT=many: accepted is a number of at least 0");
  CHECK(refused({{"CACHE_MAX_SIZE", "-2"}}) ==
        "FI_MR_CACHE_MAX_SIZE=-2: accepted is a number of bytes of at least 0, or -1 for no limit");
  CHECK(refused({{"ZE_CACHE_MONITOR_ENABLED", "maybe"}}) ==
        "FI_MR_ZE_CACHE_MONITOR_ENABLED=maybe: failed to parse bool var mr_ze_cache_monitor_enabled=maybe; accepted is "
        "1, true, yes, on, 0, false, "
        "no or off");
  CHECK(refused({{"CACHE_MAX_COUNT", "0"}, {"CACHE_MONITOR", "memhooks"}})
            .starts_with("FI_MR_CACHE_MAX_COUNT=0: with FI_MR_CACHE_MONITOR=memhooks libfabric's cxi opens no domain"));
}

TEST_CASE("settings about devices are read, and wrong ones refused in libfabric's words") {
  CHECK(accepted().device_memory.processor_copies_max == 4096);
  const Settings threshold{{"SAFE_DEVMEM_COPY_THRESHOLD", "0x400"}};
  CHECK(accepted().device_memory.processor_copies_max == 1024);
  const auto refused = [](std::initializer_list<std::pair<std::string, std::string>> settings,
                          const std::string& prefix) {
    const Settings all(settings, prefix);
    return refusal();
  };
  CHECK(refused({{"SAFE_DEVMEM_COPY_THRESHOLD", "-1"}}, "FI_CXI_") ==
        "FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD=-1: accepted is a number of at least 0");
  CHECK(refused({{"FORCE_DEV_REG_COPY", "2"}}, "FI_CXI_") ==
        "FI_CXI_FORCE_DEV_REG_COPY=2: failed to parse bool var force_dev_reg_copy=2; accepted is 1, true, yes, on, 0, "
        "false, "
        "no or off");
  CHECK(
      refused({{"HMEM", "cuda;hip"}}, "FI_") ==
      "FI_HMEM=cuda;hip: unknown HMEM interface specified in FI_HMEM, entry=\"hip\"; accepted are system, cuda, rocr, "
      "ze, neuron and synapseai");
  CHECK(refused({{"HMEM_CUDA_USE_GDRCOPY", "maybe"}}, "FI_") ==
        "FI_HMEM_CUDA_USE_GDRCOPY=maybe: failed to parse bool var hmem_cuda_use_gdrcopy=maybe; accepted is 1, true, "
        "yes, on, 0, false, "
        "no or off");
  CHECK(refused({{"ROCR_D2H_THRESHOLD", "much"}}, "FI_") ==
        "FI_ROCR_D2H_THRESHOLD=much: accepted is a number of at least 0");
}

TEST_CASE("libfabric's shm copies by a call of the kernel, unless it is told to attach memory") {
  CHECK_FALSE(accepted().registration.attaches);
  const Settings settings({{"USE_XPMEM", "1"}}, "FI_SHM_");
  CHECK(accepted().registration.attaches);
  const Settings wrong({{"USE_XPMEM", "maybe"}}, "FI_SHM_");
  CHECK(refusal() ==
        "FI_SHM_USE_XPMEM=maybe: failed to parse bool var use_xpmem=maybe; accepted is 1, true, yes, on, 0, false, "
        "no or off");
}

TEST_CASE("the heap lies on huge pages where libhugetlbfs would put it there") {
  const auto with = [](std::initializer_list<std::pair<std::string, std::string>> settings) {
    const Settings all(settings, "HUGETLB_");
    return accepted().registration.heap_page;
  };
  CHECK(with({{"DEFAULT_PAGE_SIZE", "8M"}}) == 0);
  CHECK(with({{"MORECORE", "yes"}}) == 2 << 20);
  CHECK(with({{"MORECORE", "yes"}, {"DEFAULT_PAGE_SIZE", "8M"}}) == 8 << 20);
  CHECK(with({{"MORECORE", "512kb"}}) == 512 << 10);
  CHECK(with({{"MORECORE", "thp"}}) == 0);
  const Settings wrong({{"MORECORE", "3M"}}, "HUGETLB_");
  CHECK(refusal() == "HUGETLB_MORECORE=3M: accepted are yes, no, thp and a page size such as 2M");
}
