#include "provider/memory.hpp"

#include <cstdlib>
#include <cstring>

#include "provider/ep.hpp"
#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;
using wire::CommandKind;
using wire::EventKind;

TEST_CASE("a region is known to the run from fi_mr_enable to its close, under its key and end-point") {
  Rig rig;
  char memory[64];
  fid_mr* region = nullptr;
  REQUIRE(fi_mr_reg(rig.domain, memory, sizeof memory, FI_REMOTE_READ, 0, 7, 0, &region, nullptr) == 0);
  CHECK(fi_mr_key(region) == 7);
  CHECK(rig.run.pushed.empty());
  CHECK(fi_mr_enable(region) == -FI_EOPBADSTATE);  // not bound
  REQUIRE(fi_mr_bind(region, &rig.endpoint->fid, 0) == 0);
  REQUIRE(fi_mr_enable(region) == 0);
  CHECK(rig.last().kind == CommandKind::memory_region);
  CHECK(rig.last().key == 7);
  CHECK(rig.last().buffer == reinterpret_cast<std::uint64_t>(memory));
  CHECK(rig.last().length == sizeof memory);
  CHECK(rig.last().access == FI_REMOTE_READ);

  fid_mr* second = nullptr;
  CHECK(fi_mr_reg(rig.domain, memory, 1, 0, 0, 7, 0, &second, nullptr) == -FI_ENOKEY);
  CHECK(fi_mr_reg(rig.domain, memory, 1, 0, 0, std::uint64_t{1} << 32, 0, &second, nullptr) == -FI_ENOKEY);
  REQUIRE(fi_close(&region->fid) == 0);
  CHECK(rig.last().kind == CommandKind::close_memory_region);
}

TEST_CASE("a region is bound to one enabled end-point of its domain, with any flags") {
  Rig rig;
  char memory[64];
  fid_mr* region = nullptr;
  REQUIRE(fi_mr_reg(rig.domain, memory, sizeof memory, FI_REMOTE_READ, 0, 7, 0, &region, nullptr) == 0);
  fid_ep* later = nullptr;
  REQUIRE(fi_endpoint(rig.domain, rig.info, &later, nullptr) == 0);
  CHECK(fi_mr_bind(region, &later->fid, 0) == -FI_EINVAL);  // not enabled
  REQUIRE(fi_ep_bind(later, &rig.addresses->fid, 0) == 0);
  REQUIRE(fi_enable(later) == 0);
  fid_domain* other = nullptr;
  REQUIRE(fi_domain(rig.fabric, rig.info, &other, nullptr) == 0);
  fid_mr* foreign = nullptr;
  REQUIRE(fi_mr_reg(other, memory, sizeof memory, FI_REMOTE_READ, 0, 9, 0, &foreign, nullptr) == 0);
  CHECK(fi_mr_bind(foreign, &later->fid, 0) == -FI_EINVAL);
  CHECK(fi_mr_bind(region, &later->fid, FI_REMOTE_WRITE | FI_TRANSMIT) == 0);
  CHECK(fi_mr_bind(region, &later->fid, 0) == -FI_EINVAL);  // it has one
  CHECK(fi_close(&foreign->fid) == 0);
  CHECK(fi_close(&other->fid) == 0);
  CHECK(fi_close(&region->fid) == 0);
  CHECK(fi_close(&later->fid) == 0);
}

TEST_CASE("a region counts what others do to it with the counter bound to it, and no other counter does") {
  Rig rig;
  char memory[64];
  fid_mr* region = nullptr;
  fid_cntr* counter = nullptr;
  fi_cntr_attr attributes{};
  REQUIRE(fi_cntr_open(rig.domain, &attributes, &counter, nullptr) == 0);
  REQUIRE(fi_mr_reg(rig.domain, memory, sizeof memory, FI_REMOTE_WRITE, 0, 7, 0, &region, nullptr) == 0);
  CHECK(fi_mr_bind(region, &counter->fid, FI_REMOTE_READ) == -FI_EINVAL);
  REQUIRE(fi_mr_bind(region, &counter->fid, FI_REMOTE_WRITE) == 0);
  CHECK(fi_mr_bind(region, &counter->fid, FI_REMOTE_WRITE) == -FI_EINVAL);
  CHECK(fi_close(&counter->fid) == -FI_EBUSY);
  REQUIRE(fi_mr_bind(region, &rig.endpoint->fid, 0) == 0);
  REQUIRE(fi_mr_enable(region) == 0);
  CHECK((rig.last().flags & wire::command_flag::tells) != 0);
  wire::Event event{};
  event.kind = EventKind::accessed;
  event.endpoint = rig.last().endpoint;
  event.key = 7;
  rig.run.add(event);
  event.key = 8;  // of a region that is gone
  rig.run.add(event);
  CHECK(fi_cntr_read(counter) == 1);
  CHECK(fi_cntr_read(rig.memory_counter) == 0);
  REQUIRE(fi_close(&region->fid) == 0);
  CHECK(fi_close(&counter->fid) == 0);
}

TEST_CASE("a write with data is fetched by the NIC and carries the data, where the setting and the domain allow it") {
  {
    Rig without(FI_TRANSMIT | FI_RECV, FI_MR_PROV_KEY);
    CHECK(fi_writedata(without.endpoint, "x", 1, nullptr, 9, 1, 0, 0, nullptr) == -FI_ENOSYS);
  }
  setenv("FI_CXI_ENABLE_WRITEDATA", "1", 1);
  {
    Rig own_keys(FI_TRANSMIT | FI_RECV);
    CHECK(fi_writedata(own_keys.endpoint, "x", 1, nullptr, 9, 1, 0, 0, nullptr) == -FI_ENOSYS);
    CHECK(fi_inject_writedata(own_keys.endpoint, "x", 1, 9, 1, 0, 0) == -FI_ENOSYS);
  }
  Rig rig(FI_TRANSMIT | FI_RECV, FI_MR_PROV_KEY);
  unsetenv("FI_CXI_ENABLE_WRITEDATA");
  constexpr std::uint32_t expected = wire::command_flag::has_data | wire::command_flag::by_dma;
  REQUIRE(fi_writedata(rig.endpoint, "x", 1, nullptr, 9, 1, 16, 0, nullptr) == 0);
  CHECK(rig.last().kind == CommandKind::write);
  CHECK((rig.last().flags & (expected | wire::command_flag::unordered)) == expected);
  CHECK(rig.last().data == 9);
  CHECK(rig.last().remote_offset == 16);
  REQUIRE(fi_inject_writedata(rig.endpoint, "x", 1, 10, 1, 0, 0) == 0);
  CHECK((rig.last().flags & expected) == expected);
  CHECK_FALSE(rig.run.pushed.back().stable);
  char byte = 0;
  iovec part{&byte, 1};
  fi_rma_iov place{.addr = 0, .len = 1, .key = 0};
  const fi_msg_rma message{&part, nullptr, 1, 1, &place, 1, nullptr, 9};
  CHECK(fi_writemsg(rig.endpoint, &message, FI_REMOTE_CQ_DATA) == -FI_EBADFLAGS);
}

TEST_CASE("a region with FI_RMA_EVENT needs an end-point with it") {
  Rig rig;
  char memory[64];
  fid_mr* region = nullptr;
  REQUIRE(fi_mr_reg(rig.domain, memory, sizeof memory, FI_REMOTE_WRITE, 0, 7, FI_RMA_EVENT, &region, nullptr) == 0);
  CHECK(fi_mr_bind(region, &rig.endpoint->fid, 0) == -FI_EINVAL);
  CHECK(fi_close(&region->fid) == 0);
}

TEST_CASE("a read brings its bytes to the caller's buffer and is counted") {
  Rig rig;
  char buffer[4] = {};
  const std::uint64_t start = rig.run.now_ps();
  REQUIRE(fi_read(rig.endpoint, buffer, 4, nullptr, 2, 16, 7, nullptr) == 0);
  CHECK(rig.last().at_ps == start + costs.rma_fetched_ps);
  CHECK(rig.last().remote_offset == 16);
  CHECK(rig.last().key == 7);
  auto event = rig.answer(EventKind::rma_done);
  event.place_length = 4;
  rig.run.add(event, 0, "data");
  CHECK(fi_cntr_read(rig.memory_counter) == 1);
  CHECK(std::memcmp(buffer, "data", 4) == 0);
}

TEST_CASE("a failed write is an error entry and an error count, even of an inject") {
  Rig rig;
  REQUIRE(fi_inject_write(rig.endpoint, "x", 1, 2, 0, 99) == 0);
  auto event = rig.answer(EventKind::rma_done);
  event.error = FI_EKEYREJECTED;
  rig.run.add(event);
  fi_cq_tagged_entry entry{};
  REQUIRE(fi_cq_read(rig.queue, &entry, 1) == -FI_EAVAIL);
  fi_cq_err_entry error{};
  REQUIRE(fi_cq_readerr(rig.queue, &error, 0) == 1);
  CHECK(error.err == FI_EKEYREJECTED);
  CHECK(fi_cntr_read(rig.memory_counter) == 0);
  CHECK(fi_cntr_readerr(rig.memory_counter) == 1);
}

TEST_CASE("a compare atomic carries its operand and then what it compares with") {
  Rig rig;
  const std::uint32_t operand = 0x11111111;
  const std::uint32_t compared = 0x22222222;
  std::uint32_t result = 0;
  REQUIRE(fi_compare_atomic(rig.endpoint, &operand, 1, nullptr, &compared, nullptr, &result, nullptr, 1, 8, 3,
                            FI_UINT32, FI_CSWAP, nullptr) == 0);
  CHECK(rig.last().kind == CommandKind::compare_atomic);
  CHECK(rig.last().atomic_op == FI_CSWAP);
  CHECK(rig.last().atomic_type == FI_UINT32);
  CHECK(rig.last().operand_bytes == 4);
  CHECK(rig.run.pushed.back().payload == "\x11\x11\x11\x11\x22\x22\x22\x22");
  auto event = rig.answer(EventKind::rma_done);
  event.place_length = 4;
  rig.run.add(event, 0, "\x33\x33\x33\x33");
  CHECK(fi_cntr_read(rig.memory_counter) == 1);
  CHECK(result == 0x33333333);
}

TEST_CASE("the NIC's atomics: one element, sums of complex numbers, no products") {
  Rig rig;
  std::size_t count = 0;
  CHECK(fi_atomicvalid(rig.endpoint, FI_DOUBLE_COMPLEX, FI_SUM, &count) == 0);
  CHECK(count == 1);
  CHECK(fi_atomicvalid(rig.endpoint, FI_INT32, FI_PROD, &count) == -FI_EOPNOTSUPP);
  CHECK(fi_atomicvalid(rig.endpoint, FI_DOUBLE, FI_BOR, &count) == -FI_EOPNOTSUPP);
  CHECK(fi_atomicvalid(rig.endpoint, static_cast<fi_datatype>(16), FI_SUM, &count) == -FI_EINVAL);
  CHECK(fi_atomicvalid(rig.endpoint, FI_INT32, FI_ATOMIC_READ, &count) == -FI_EOPNOTSUPP);
  CHECK(fi_fetch_atomicvalid(rig.endpoint, FI_INT32, FI_ATOMIC_READ, &count) == 0);
  CHECK(fi_compare_atomicvalid(rig.endpoint, static_cast<fi_datatype>(14), FI_CSWAP, &count) == 0);  // FI_INT128
  CHECK(fi_compare_atomicvalid(rig.endpoint, FI_LONG_DOUBLE, FI_CSWAP, &count) == -FI_EOPNOTSUPP);
  const int two[2] = {};
  CHECK(fi_atomic(rig.endpoint, two, 2, nullptr, 1, 0, 0, FI_INT32, FI_SUM, nullptr) == -FI_EINVAL);
}

namespace {

// An end-point of a domain with the provider's own keys.
struct OwnKeys {
  Rig rig;
  fid_domain* domain = nullptr;
  fid_av* addresses = nullptr;
  fid_cq* queue = nullptr;
  fid_ep* endpoint = nullptr;
  OwnKeys() {
    rig.info->domain_attr->mr_mode |= FI_MR_PROV_KEY;
    fi_av_attr av{};
    fi_cq_attr cq{};
    cq.format = FI_CQ_FORMAT_DATA;
    REQUIRE(fi_domain(rig.fabric, rig.info, &domain, nullptr) == 0);
    REQUIRE(fi_av_open(domain, &av, &addresses, nullptr) == 0);
    REQUIRE(fi_cq_open(domain, &cq, &queue, nullptr) == 0);
    REQUIRE(fi_endpoint(domain, rig.info, &endpoint, nullptr) == 0);
    REQUIRE(fi_ep_bind(endpoint, &addresses->fid, 0) == 0);
    REQUIRE(fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_RECV) == 0);
    REQUIRE(fi_enable(endpoint) == 0);
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const provider::Address address{wire::make_address(rank, 0), 0};
      fi_addr_t handle = FI_ADDR_NOTAVAIL;
      REQUIRE(fi_av_insert(addresses, &address, 1, &handle, 0, nullptr) == 1);
    }
  }
  ~OwnKeys() {
    CHECK(fi_close(&endpoint->fid) == 0);
    CHECK(fi_close(&queue->fid) == 0);
    CHECK(fi_close(&addresses->fid) == 0);
    CHECK(fi_close(&domain->fid) == 0);
  }
  std::uint64_t key_of(fid_mr*& region, char* memory, fid_cntr* counter = nullptr) const {
    REQUIRE(fi_mr_reg(domain, memory, 64, FI_REMOTE_WRITE, 0, 0, 0, &region, memory) == 0);
    REQUIRE(fi_mr_bind(region, &endpoint->fid, 0) == 0);
    if (counter != nullptr) REQUIRE(fi_mr_bind(region, &counter->fid, FI_REMOTE_WRITE) == 0);
    REQUIRE(fi_mr_enable(region) == 0);
    return fi_mr_key(region);
  }
  bool unordered(std::uint64_t key) const {
    provider::object_of<provider::Endpoint>(endpoint)->order = FI_ORDER_SAS;
    REQUIRE(fi_write(endpoint, "x", 1, nullptr, 2, 0, key, nullptr) == 0);
    return (rig.last().flags & wire::command_flag::unordered) != 0;
  }
};

}  // namespace

TEST_CASE("writes with data are there where they are enabled and keys are the provider's") {
  Rig plain;
  CHECK(fi_writedata(plain.endpoint, "x", 1, nullptr, 5, 2, 0, 7, nullptr) == -FI_ENOSYS);
  setenv("FI_CXI_ENABLE_WRITEDATA", "1", 1);
  {
    Rig enabled;
    CHECK(fi_writedata(enabled.endpoint, "x", 1, nullptr, 5, 2, 0, 7, nullptr) == -FI_ENOSYS);
    const OwnKeys own;
    REQUIRE(fi_writedata(own.endpoint, "x", 1, nullptr, 5, 2, 0, 7, nullptr) == 0);
    CHECK(own.rig.last().data == 5);
    CHECK(own.rig.last().flags ==
          (wire::command_flag::has_data | wire::command_flag::by_dma | wire::command_flag::wants_completion));
    REQUIRE(fi_inject_writedata(own.endpoint, "y", 1, 6, 2, 0, 7) == 0);
    CHECK(own.rig.last().data == 6);
    CHECK_FALSE(own.rig.run.pushed.back().stable);
  }
  unsetenv("FI_CXI_ENABLE_WRITEDATA");
}

TEST_CASE("the target of a write with data finds it in its queue, with the region's context") {
  setenv("FI_CXI_ENABLE_WRITEDATA", "1", 1);
  {
    const OwnKeys own;
    char memory[64] = {};
    fid_mr* region = nullptr;
    wire::Event event{};
    event.kind = EventKind::written;
    event.key = own.key_of(region, memory);
    event.endpoint = own.rig.last().endpoint;
    event.peer = wire::make_address(3, 0);
    event.data = 5;
    event.length = 8;
    event.offset = 16;
    own.rig.run.add(event);
    fi_cq_data_entry entry{};
    fi_addr_t source = 0;
    REQUIRE(fi_cq_readfrom(own.queue, &entry, 1, &source) == 1);
    CHECK(entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
    CHECK(entry.op_context == memory);
    CHECK(entry.buf == memory + 16);
    CHECK(entry.len == 8);
    CHECK(entry.data == 5);
    CHECK(source == 3);
    CHECK(fi_close(&region->fid) == 0);
  }
  unsetenv("FI_CXI_ENABLE_WRITEDATA");
}

TEST_CASE("a key of the provider says whether its region is an optimized one, and whether it tells of accesses") {
  const OwnKeys own;
  fi_cntr_attr attributes{};
  attributes.events = FI_CNTR_EVENTS_COMP;
  fid_cntr* counter = nullptr;
  REQUIRE(fi_cntr_open(own.domain, &attributes, &counter, nullptr) == 0);
  char memory[2][64] = {};
  fid_mr* plain = nullptr;
  fid_mr* counted = nullptr;
  CHECK(own.unordered(own.key_of(plain, memory[0])));
  CHECK_FALSE(own.unordered(own.key_of(counted, memory[1], counter)));
  CHECK((own.rig.last().flags & wire::command_flag::by_dma) == 0);  // among the first 92
  CHECK(fi_close(&plain->fid) == 0);
  CHECK(fi_close(&counted->fid) == 0);
  CHECK(fi_close(&counter->fid) == 0);
}

TEST_CASE("without the cache of keys only the first regions are optimized") {
  setenv("FI_CXI_PROV_KEY_CACHE", "0", 1);
  {
    const OwnKeys own;
    char memory[64] = {};
    for (int i = 0; i <= 92; ++i) {
      fid_mr* region = nullptr;
      CHECK(own.unordered(own.key_of(region, memory)) == (i < 92));
      CHECK(fi_close(&region->fid) == 0);
    }
  }
  unsetenv("FI_CXI_PROV_KEY_CACHE");
}
