#include "provider/streams.hpp"

#include <rdma/fi_trigger.h>

#include "provider/cntr.hpp"
#include "provider/memory.hpp"
#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;

namespace {

struct Calls {
  int (*set_wb_buffer)(fid* fid, void* buffer, size_t length);
  int (*get_mmio_addr)(fid* fid, void** address, size_t* length);
};

// What the provider gives the rank's clock.
const rank::StreamServing& serving() { return provider::attach()->polls().streams().serving(); }

struct Extended {
  Rig rig;
  fid_cntr* counter = nullptr;
  Calls* calls = nullptr;
  std::uint64_t* doorbell = nullptr;

  Extended() {
    REQUIRE(fi_cntr_open(rig.domain, nullptr, &counter, nullptr) == 0);
    REQUIRE(fi_open_ops(&counter->fid, "cxi_counter_ops", 0, reinterpret_cast<void**>(&calls), nullptr) == 0);
    std::size_t length = 0;
    REQUIRE(calls->get_mmio_addr(&counter->fid, reinterpret_cast<void**>(&doorbell), &length) == 0);
    CHECK(length == 256);
    fake_run().page->news.head.store(0);
    fake_run().page->news.tail.store(0);
  }
  ~Extended() { CHECK(fi_close(&counter->fid) == 0); }
  std::uint32_t number() const { return provider::object_of<provider::Counter>(counter)->number; }
};

}  // namespace

TEST_CASE("a counter has the extension of the cxi provider, and no other") {
  const Extended extended;
  void* calls = nullptr;
  CHECK(fi_open_ops(&extended.counter->fid, "dom_ops_v1", 0, &calls, nullptr) == -FI_EINVAL);
}

TEST_CASE("what is written to a doorbell adds to the counter, in the NIC too, at the instant of the write") {
  const Extended extended;
  *extended.doorbell = 3;
  serving().wrote(reinterpret_cast<std::uint64_t>(extended.doorbell), 77);
  REQUIRE(extended.rig.run.pushed.size() == 1);
  CHECK(extended.rig.last().kind == wire::CommandKind::count);
  CHECK(extended.rig.last().counter == extended.number());
  CHECK(extended.rig.last().data == 3);
  CHECK(extended.rig.last().at_ps == 77);
  CHECK(fi_cntr_read(extended.counter) == 3);
  serving().wrote(reinterpret_cast<std::uint64_t>(extended.doorbell), 78);
  CHECK(extended.rig.run.pushed.size() == 1);  // nothing new is there
}

TEST_CASE("the processor's own writes reach the counter at the next call, a reset and failures among them") {
  const Extended extended;
  *extended.doorbell = 5;
  CHECK(fi_cntr_read(extended.counter) == 5);
  extended.doorbell[8] = 2;
  CHECK(fi_cntr_read(extended.counter) == 5);
  CHECK(fi_cntr_readerr(extended.counter) == 2);
  extended.doorbell[16] = 0;
  CHECK(fi_cntr_read(extended.counter) == 0);
  CHECK((extended.rig.last().flags & wire::command_flag::sets) != 0);
  extended.doorbell[24] = 0;
  CHECK(fi_cntr_readerr(extended.counter) == 0);
}

TEST_CASE("a buffer of a counter has what the NIC has written back, and what the program has read") {
  const Extended extended;
  std::uint64_t buffer = 0;
  CHECK(extended.calls->set_wb_buffer(&extended.counter->fid, nullptr, 8) == -FI_EINVAL);
  CHECK(extended.calls->set_wb_buffer(&extended.counter->fid, &buffer, 7) == -FI_EINVAL);
  REQUIRE(extended.calls->set_wb_buffer(&extended.counter->fid, &buffer, 8) == 0);
  CHECK(extended.rig.last().kind == wire::CommandKind::write_back);
  CHECK(extended.rig.last().buffer == reinterpret_cast<std::uint64_t>(&buffer));
  wire::RankPage& page = *fake_run().page;
  page.news.news[0] = {.at_ps = fake_run().now_ps(),
                       .address = reinterpret_cast<std::uint64_t>(&buffer),
                       .value = std::uint64_t{1} << 63 | 9,
                       .counter = extended.number(),
                       .bytes = 8};
  page.news.head.store(1);
  CHECK(serving().watch(reinterpret_cast<std::uint64_t>(&buffer), 8));
  CHECK(buffer == (std::uint64_t{1} << 63 | 9));
  REQUIRE(fi_cntr_set(extended.counter, 12) == 0);
  CHECK(fi_cntr_read(extended.counter) == 12);
  CHECK(buffer == (std::uint64_t{1} << 63 | 12));
}

TEST_CASE("other memory that a stream waits for is the NIC's to tell of") {
  const Extended extended;
  const std::uint32_t word = 0;
  CHECK_FALSE(serving().watch(reinterpret_cast<std::uint64_t>(&word), 4));
  CHECK(extended.rig.last().kind == wire::CommandKind::watch);
  CHECK(extended.rig.last().buffer == reinterpret_cast<std::uint64_t>(&word));
  CHECK(extended.rig.last().length == 4);
}

TEST_CASE("FI_CXI_CNTR_WB queues a write-back of the triggering counter, behind its work") {
  const Extended extended;
  char data[8] = "eleven";
  iovec part{data, sizeof data};
  fi_rma_iov remote{.addr = 0, .len = sizeof data, .key = 5};
  fi_op_rma write{};
  write.ep = extended.rig.endpoint;
  write.msg.msg_iov = &part;
  write.msg.iov_count = 1;
  write.msg.rma_iov = &remote;
  write.msg.rma_iov_count = 1;
  write.msg.addr = 1;
  write.flags = std::uint64_t{1} << 62;
  fi_deferred_work work{};
  work.threshold = 3;
  work.triggering_cntr = extended.counter;
  work.completion_cntr = extended.counter;
  work.op_type = FI_OP_WRITE;
  work.op.rma = &write;
  REQUIRE(fi_control(&extended.rig.domain->fid, FI_QUEUE_WORK, &work) == 0);
  REQUIRE(extended.rig.run.pushed.size() == 2);
  CHECK(extended.rig.run.pushed[0].command.kind == wire::CommandKind::write);
  CHECK(extended.rig.last().kind == wire::CommandKind::write_back);
  CHECK(extended.rig.last().trigger == extended.number());
  CHECK(extended.rig.last().threshold == 4);
  CHECK(fi_control(&extended.rig.domain->fid, FI_CANCEL_WORK, &work) == 0);
  REQUIRE(extended.rig.run.pushed.size() == 4);  // both are cancelled
  for (std::size_t nth : {0, 1}) {
    CHECK(extended.rig.run.pushed[2 + nth].command.kind == wire::CommandKind::cancel_trigger);
    CHECK(extended.rig.run.pushed[2 + nth].command.context == extended.rig.run.pushed[nth].command.context);
  }
}
