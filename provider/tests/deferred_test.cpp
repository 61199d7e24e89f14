#include <rdma/fi_trigger.h>

#include "provider/cntr.hpp"
#include "provider/memory.hpp"
#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;

namespace {

// A write of eight bytes to rank 1, for when `trigger` reaches the threshold.
struct DeferredWrite {
  Rig rig;
  fid_cntr* trigger = nullptr;
  fid_cntr* done = nullptr;
  char data[8] = "seven";
  iovec part{data, sizeof data};
  fi_rma_iov remote{.addr = 64, .len = sizeof data, .key = 5};
  fi_op_rma write{};
  fi_deferred_work work{};

  explicit DeferredWrite(std::uint64_t threshold) {
    fi_cntr_attr attributes{};
    attributes.events = FI_CNTR_EVENTS_COMP;
    attributes.wait_obj = FI_WAIT_UNSPEC;
    REQUIRE(fi_cntr_open(rig.domain, &attributes, &trigger, nullptr) == 0);
    REQUIRE(fi_cntr_open(rig.domain, &attributes, &done, nullptr) == 0);
    write.ep = rig.endpoint;
    write.msg.msg_iov = &part;
    write.msg.iov_count = 1;
    write.msg.rma_iov = &remote;
    write.msg.rma_iov_count = 1;
    write.msg.addr = 1;
    work.threshold = threshold;
    work.triggering_cntr = trigger;
    work.completion_cntr = done;
    work.op_type = FI_OP_WRITE;
    work.op.rma = &write;
  }
  ~DeferredWrite() {
    CHECK(fi_control(&rig.domain->fid, FI_FLUSH_WORK, nullptr) == 0);
    CHECK(fi_close(&trigger->fid) == 0);
    CHECK(fi_close(&done->fid) == 0);
  }
  int queue() { return fi_control(&rig.domain->fid, FI_QUEUE_WORK, &work); }
};

}  // namespace

TEST_CASE("deferred work goes to the NIC at once, with its counter and threshold, and its payload stays in memory") {
  DeferredWrite deferred(2);
  REQUIRE(deferred.queue() == 0);
  REQUIRE(deferred.rig.run.pushed.size() == 1);
  const wire::Command& command = deferred.rig.last();
  CHECK(command.kind == wire::CommandKind::write);
  CHECK(command.trigger == provider::object_of<provider::Counter>(deferred.trigger)->number);
  CHECK(command.trigger != 0);
  CHECK(command.threshold == 2);
  CHECK(command.counter == provider::object_of<provider::Counter>(deferred.done)->number);
  CHECK((command.flags & wire::command_flag::by_dma) != 0);
  CHECK((command.flags & wire::command_flag::payload_memory) != 0);
  CHECK(command.buffer == reinterpret_cast<std::uint64_t>(deferred.data));
  CHECK(command.remote_offset == 64);
  CHECK(command.key == 5);
  CHECK(command.length == 8);
  CHECK(wire::address_rank(command.peer) == 1);
}

TEST_CASE("the NIC hears of what the program does to a counter") {
  DeferredWrite deferred(2);
  REQUIRE(fi_cntr_add(deferred.trigger, 3) == 0);
  CHECK(deferred.rig.last().kind == wire::CommandKind::count);
  CHECK(deferred.rig.last().counter == provider::object_of<provider::Counter>(deferred.trigger)->number);
  CHECK(deferred.rig.last().data == 3);
  CHECK((deferred.rig.last().flags & wire::command_flag::sets) == 0);
  REQUIRE(fi_cntr_set(deferred.trigger, 1) == 0);
  CHECK((deferred.rig.last().flags & wire::command_flag::sets) != 0);
}

TEST_CASE("its completion is counted by the work's counter and not by the end-point's") {
  DeferredWrite deferred(1);
  REQUIRE(deferred.queue() == 0);
  CHECK(fi_cntr_read(deferred.done) == 0);
  deferred.rig.run.add(deferred.rig.answer(wire::EventKind::rma_done));
  CHECK(fi_cntr_wait(deferred.done, 1, -1) == 0);
  CHECK(fi_cntr_read(deferred.done) == 1);
  CHECK(fi_cntr_read(deferred.rig.memory_counter) == 0);
}

TEST_CASE("a deferred count is the NIC's, and the program sees it when the NIC has told") {
  for (const bool sets : {false, true}) {
    DeferredWrite deferred(3);
    REQUIRE(fi_cntr_add(deferred.done, 5) == 0);
    fi_op_cntr change{.cntr = deferred.done, .value = 3};
    fi_deferred_work work{};
    work.threshold = 1;
    work.triggering_cntr = deferred.trigger;
    work.op_type = sets ? FI_OP_CNTR_SET : FI_OP_CNTR_ADD;
    work.op.cntr = &change;
    REQUIRE(fi_control(&deferred.rig.domain->fid, FI_QUEUE_WORK, &work) == 0);
    CHECK(deferred.rig.last().kind == wire::CommandKind::count);
    CHECK(deferred.rig.last().trigger == provider::object_of<provider::Counter>(deferred.trigger)->number);
    CHECK(fi_cntr_read(deferred.done) == 5);
    deferred.rig.run.add(deferred.rig.answer(wire::EventKind::counted));
    const std::uint64_t wanted = sets ? 3 : 8;
    CHECK(fi_cntr_wait(deferred.done, sets ? 0 : wanted, -1) == 0);
    CHECK(fi_cntr_read(deferred.done) == wanted);
  }
}

TEST_CASE("work can be cancelled by its name, and not twice") {
  DeferredWrite deferred(1);
  REQUIRE(deferred.queue() == 0);
  const std::uint64_t operation = deferred.rig.last().context;
  CHECK(fi_control(&deferred.rig.domain->fid, FI_CANCEL_WORK, &deferred.work) == 0);
  CHECK(deferred.rig.last().kind == wire::CommandKind::cancel_trigger);
  CHECK(deferred.rig.last().context == operation);
  CHECK(fi_control(&deferred.rig.domain->fid, FI_CANCEL_WORK, &deferred.work) == -FI_ENOENT);
}

TEST_CASE("what is on its way cannot be cancelled, and is counted") {
  DeferredWrite deferred(1);
  REQUIRE(deferred.queue() == 0);
  const wire::Event done = deferred.rig.answer(wire::EventKind::rma_done);
  REQUIRE(fi_cntr_add(deferred.trigger, 1) == 0);
  CHECK(fi_control(&deferred.rig.domain->fid, FI_CANCEL_WORK, &deferred.work) == -FI_ENOENT);
  deferred.rig.run.add(done);
  CHECK(fi_cntr_wait(deferred.done, 1, -1) == 0);
}

TEST_CASE("an end-point that closes takes its work with it, and frees the counters") {
  DeferredWrite deferred(1);
  Rig& rig = deferred.rig;
  fid_ep* other = nullptr;
  REQUIRE(fi_endpoint(rig.domain, rig.info, &other, nullptr) == 0);
  REQUIRE(fi_ep_bind(other, &rig.addresses->fid, 0) == 0);
  REQUIRE(fi_ep_bind(other, &rig.queue->fid, FI_TRANSMIT | FI_RECV) == 0);
  REQUIRE(fi_enable(other) == 0);
  deferred.write.ep = other;
  REQUIRE(deferred.queue() == 0);
  CHECK(fi_close(&deferred.done->fid) == -FI_EBUSY);
  CHECK(fi_close(&other->fid) == 0);
  CHECK(fi_control(&rig.domain->fid, FI_CANCEL_WORK, &deferred.work) == -FI_ENOENT);
}

TEST_CASE("receives and injected sends cannot be deferred") {
  DeferredWrite deferred(1);
  fi_op_msg message{};
  message.ep = deferred.rig.endpoint;
  deferred.work.op_type = FI_OP_RECV;
  deferred.work.op.msg = &message;
  CHECK(deferred.queue() == -FI_EINVAL);
  message.flags = FI_INJECT;
  deferred.work.op_type = FI_OP_SEND;
  CHECK(deferred.queue() == -FI_EINVAL);
}

TEST_CASE("with the limit on triggered operations the service's entries are all there is") {
  for (const bool limited : {false, true}) {
    setenv("FI_CXI_ENABLE_TRIG_OP_LIMIT", limited ? "1" : "0", 1);
    DeferredWrite deferred(2);
    for (int i = 0; i < 504; ++i) REQUIRE(deferred.queue() == 0);
    CHECK(deferred.queue() == (limited ? -FI_ENOSPC : 0));
  }
  unsetenv("FI_CXI_ENABLE_TRIG_OP_LIMIT");
}
