#include <cstring>

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
  CHECK(rig.last().data == FI_REMOTE_READ);

  fid_mr* second = nullptr;
  CHECK(fi_mr_reg(rig.domain, memory, 1, 0, 0, 7, 0, &second, nullptr) == -FI_ENOKEY);
  CHECK(fi_mr_reg(rig.domain, memory, 1, 0, 0, std::uint64_t{1} << 32, 0, &second, nullptr) == -FI_ENOKEY);
  REQUIRE(fi_close(&region->fid) == 0);
  CHECK(rig.last().kind == CommandKind::close_memory_region);
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
  event.tag = 7;
  rig.run.add(event);
  event.tag = 8;  // of a region that is gone
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

TEST_CASE("data that came with a write is an entry of the receive queue, and the region counts the write too") {
  Rig rig(FI_TRANSMIT | FI_RECV, FI_MR_PROV_KEY);
  char memory[64];
  int mark = 0;
  fid_mr* region = nullptr;
  REQUIRE(fi_mr_reg(rig.domain, memory, sizeof memory, FI_REMOTE_WRITE, 0, 0, 0, &region, &mark) == 0);
  REQUIRE(fi_mr_bind(region, &rig.endpoint->fid, 0) == 0);
  REQUIRE(fi_mr_bind(region, &rig.memory_counter->fid, FI_REMOTE_WRITE) == 0);
  REQUIRE(fi_mr_enable(region) == 0);
  wire::Event event{};
  event.kind = EventKind::accessed;
  event.endpoint = rig.last().endpoint;
  event.peer = wire::make_address(3, 0);
  event.tag = fi_mr_key(region);
  event.length = 24;
  event.buffer = reinterpret_cast<std::uint64_t>(memory + 8);
  rig.run.add(event);  // without data
  event.flags = wire::event_flag::has_data;
  event.data = 77;
  rig.run.add(event);
  fi_cq_tagged_entry entry{};
  fi_addr_t source = FI_ADDR_NOTAVAIL;
  REQUIRE(fi_cq_readfrom(rig.queue, &entry, 1, &source) == 1);
  CHECK(source == 3);
  CHECK(entry.op_context == &mark);
  CHECK(entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA));
  CHECK(entry.len == 24);
  CHECK(entry.buf == memory + 8);
  CHECK(entry.data == 77);
  CHECK(fi_cq_read(rig.queue, &entry, 1) == -FI_EAGAIN);
  CHECK(fi_cntr_read(rig.memory_counter) == 2);
  REQUIRE(fi_close(&region->fid) == 0);
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
  CHECK(rig.last().at_ps == start + costs.rma_ps);
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
  CHECK(rig.last().aux == 4);
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
