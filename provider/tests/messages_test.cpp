#include <cstring>

#include "provider/tests/rig.hpp"

using namespace dryfly;
using namespace dryfly::test;
using wire::CommandKind;
using wire::EventKind;
namespace command_flag = wire::command_flag;
namespace event_flag = wire::event_flag;

TEST_CASE("a tagged send costs one send, and its completion one completion") {
  Rig rig;
  int context = 0;
  const std::uint64_t start = rig.run.now_ps();
  REQUIRE(fi_tsenddata(rig.endpoint, "abc", 3, nullptr, 77, 2, 0x5, &context) == 0);
  CHECK(rig.last().kind == CommandKind::tagged_send);
  CHECK(rig.last().at_ps == start + costs.send_ps);
  CHECK(rig.last().peer == wire::make_address(2, 0));
  CHECK(rig.last().tag == 5);
  CHECK(rig.last().data == 77);
  CHECK(rig.last().flags == (command_flag::has_data | command_flag::wants_completion));
  CHECK(rig.run.pushed.back().payload == "abc");

  rig.run.add(rig.answer(EventKind::sent));
  fi_cq_tagged_entry entry{};
  REQUIRE(fi_cq_read(rig.queue, &entry, 1) == 1);
  CHECK(entry.op_context == &context);
  CHECK(entry.flags == (FI_SEND | FI_TAGGED));
  CHECK(rig.run.now_ps() == start + costs.send_ps + costs.sent_ps);
}

TEST_CASE("a call costs by what the provider has to do, and a completion by what it is of") {
  Rig rig;
  const std::string bytes(rig.run.header->inline_max + 1, 'x');
  const auto cost_of = [&](const auto& call) {
    const std::uint64_t start = rig.run.now_ps();
    REQUIRE(call() == 0);
    return rig.run.now_ps() - start;
  };
  const auto sends = [&](std::size_t length) {
    return cost_of([&] { return fi_tsend(rig.endpoint, bytes.data(), length, nullptr, 2, 0, nullptr); });
  };
  CHECK(sends(bytes.size() - 1) == costs.send_ps);
  CHECK(sends(bytes.size()) == costs.send_fetched_ps);
  const auto writes = [&](std::size_t length) {
    return cost_of([&] { return fi_write(rig.endpoint, bytes.data(), length, nullptr, 2, 0, 7, nullptr); });
  };
  CHECK(writes(bytes.size() - 1) == costs.rma_ps);
  CHECK(writes(bytes.size()) == costs.rma_fetched_ps);
  char buffer[8];
  CHECK(cost_of([&] { return fi_trecv(rig.endpoint, buffer, 8, nullptr, 2, 0, 0, nullptr); }) == costs.receive_ps);
  rig.run.add(rig.answer(EventKind::received));
  const std::uint64_t start = rig.run.now_ps();
  fi_cq_tagged_entry entry{};
  REQUIRE(fi_cq_read(rig.queue, &entry, 1) == 1);
  CHECK(rig.run.now_ps() - start == costs.received_ps);
}

TEST_CASE("a send without FI_COMPLETION on a selective queue leaves no entry and asks for no event") {
  Rig rig;
  iovec part{const_cast<char*>("x"), 1};
  fi_msg_tagged message{};
  message.msg_iov = &part;
  message.iov_count = 1;
  message.addr = 1;
  REQUIRE(fi_tsendmsg(rig.endpoint, &message, 0) == 0);
  CHECK(rig.last().flags == 0);
  REQUIRE(fi_tsendmsg(rig.endpoint, &message, FI_COMPLETION) == 0);
  CHECK(rig.last().flags == command_flag::wants_completion);
}

TEST_CASE("an inject takes its buffer at once and reports nothing") {
  Rig rig(FI_TRANSMIT | FI_RECV);
  REQUIRE(fi_tinject(rig.endpoint, "y", 1, 1, 0) == 0);
  CHECK_FALSE(rig.run.pushed.back().stable);
  CHECK(rig.last().flags == 0);
  char large[193] = {};
  CHECK(fi_tinject(rig.endpoint, large, sizeof large, 1, 0) == -FI_EMSGSIZE);
}

TEST_CASE("a receive reports what came, and who sent it") {
  Rig rig;
  char buffer[8] = {};
  int context = 0;
  REQUIRE(fi_trecv(rig.endpoint, buffer, sizeof buffer, nullptr, 3, 0x10, 0xf, &context) == 0);
  CHECK(rig.last().peer == wire::make_address(3, 0));
  CHECK(rig.last().ignore == 0xf);
  auto event = rig.answer(EventKind::received);
  event.peer = wire::make_address(3, 0);
  event.tag = 0x12;
  event.data = 9;
  event.flags = event_flag::has_data | event_flag::tagged;
  event.length = event.place_length = 5;
  event.buffer = reinterpret_cast<std::uint64_t>(buffer);
  rig.run.add(event, 0, "hello");
  fi_cq_tagged_entry entry{};
  fi_addr_t source = 0;
  REQUIRE(fi_cq_readfrom(rig.queue, &entry, 1, &source) == 1);
  CHECK(source == 3);
  CHECK(entry.op_context == &context);
  CHECK(entry.flags == (FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA));
  CHECK(entry.len == 5);
  CHECK(entry.tag == 0x12);
  CHECK(entry.data == 9);
  CHECK(std::memcmp(buffer, "hello", 5) == 0);
}

TEST_CASE("a message longer than the buffer is an error that says by how much") {
  Rig rig;
  char buffer[2];
  REQUIRE(fi_recv(rig.endpoint, buffer, sizeof buffer, nullptr, FI_ADDR_UNSPEC, nullptr) == 0);
  CHECK((rig.last().flags & command_flag::any_source) != 0);
  auto event = rig.answer(EventKind::received);
  event.length = 5;
  event.place_length = 2;
  event.error = FI_ETRUNC;
  event.buffer = reinterpret_cast<std::uint64_t>(buffer);
  rig.run.add(event, 0, "he");
  fi_cq_tagged_entry entry{};
  REQUIRE(fi_cq_read(rig.queue, &entry, 1) == -FI_EAVAIL);
  fi_cq_err_entry error{};
  REQUIRE(fi_cq_readerr(rig.queue, &error, 0) == 1);
  CHECK(error.err == FI_ETRUNC);
  CHECK(error.len == 2);
  CHECK(error.olen == 3);
}

TEST_CASE("a multi-receive buffer reports each message in place and its own end with the last") {
  Rig rig;
  char buffer[256];
  std::size_t least = 100;
  REQUIRE(fi_setopt(&rig.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least) == 0);
  iovec part{buffer, sizeof buffer};
  fi_msg message{};
  message.msg_iov = &part;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  message.context = &part;
  REQUIRE(fi_recvmsg(rig.endpoint, &message, FI_MULTI_RECV | FI_COMPLETION) == 0);
  CHECK(rig.last().min_free == 100);
  CHECK(rig.last().length == 256);
  auto event = rig.answer(EventKind::received);
  event.flags = event_flag::multi_receive;
  for (const std::uint64_t offset : {0, 3}) {
    event.buffer = reinterpret_cast<std::uint64_t>(buffer) + offset;
    event.length = event.place_length = 3;
    if (offset != 0) event.flags |= event_flag::released;
    rig.run.add(event, 0, "abc");
  }
  fi_cq_tagged_entry entries[2] = {};
  for (fi_cq_tagged_entry& entry : entries) REQUIRE(fi_cq_read(rig.queue, &entry, 1) == 1);
  CHECK(entries[0].buf == buffer);
  CHECK(entries[0].flags == (FI_RECV | FI_MSG));
  CHECK(entries[1].buf == buffer + 3);
  CHECK(entries[1].flags == (FI_RECV | FI_MSG | FI_MULTI_RECV));
  CHECK(std::memcmp(buffer, "abcabc", 6) == 0);
}

TEST_CASE("a multi-receive buffer can end without a message") {
  Rig rig;
  char buffer[256];
  iovec part{buffer, sizeof buffer};
  fi_msg message{};
  message.msg_iov = &part;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  REQUIRE(fi_recvmsg(rig.endpoint, &message, FI_MULTI_RECV | FI_COMPLETION) == 0);
  rig.run.add(rig.answer(EventKind::buffer_released));
  fi_cq_tagged_entry entry{};
  REQUIRE(fi_cq_read(rig.queue, &entry, 1) == 1);
  CHECK(entry.flags == FI_MULTI_RECV);
}

TEST_CASE("a peek that finds nothing is an error FI_ENOMSG, and one that finds says what") {
  Rig rig;
  int context = 0;
  fi_msg_tagged message{};
  message.addr = FI_ADDR_UNSPEC;
  message.tag = 4;
  message.context = &context;
  REQUIRE(fi_trecvmsg(rig.endpoint, &message, FI_PEEK) == 0);
  CHECK(rig.last().kind == CommandKind::tagged_peek);
  rig.run.add(rig.answer(EventKind::peeked));
  fi_cq_tagged_entry entry{};
  REQUIRE(fi_cq_read(rig.queue, &entry, 1) == -FI_EAVAIL);
  fi_cq_err_entry error{};
  REQUIRE(fi_cq_readerr(rig.queue, &error, 0) == 1);
  CHECK(error.err == FI_ENOMSG);
  CHECK(error.op_context == &context);

  REQUIRE(fi_trecvmsg(rig.endpoint, &message, FI_PEEK | FI_COMPLETION) == 0);
  auto found = rig.answer(EventKind::peeked);
  found.flags = event_flag::found | event_flag::tagged;
  found.length = 12;
  rig.run.add(found);
  REQUIRE(fi_cq_read(rig.queue, &entry, 1) == 1);
  CHECK(entry.len == 12);
}

TEST_CASE("a claim is taken by the receive with its context, once, or thrown away") {
  for (const std::uint64_t taking : {FI_CLAIM, FI_CLAIM | FI_DISCARD}) {
    Rig rig;
    int context = 0;
    char buffer[4];
    iovec part{buffer, sizeof buffer};
    fi_msg_tagged message{};
    message.msg_iov = &part;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &context;
    REQUIRE(fi_trecvmsg(rig.endpoint, &message, FI_PEEK | FI_CLAIM | FI_COMPLETION) == 0);
    CHECK((rig.last().flags & command_flag::claim) != 0);
    const std::uint64_t claim = rig.last().context;
    auto found = rig.answer(EventKind::peeked);
    found.flags = event_flag::found;
    rig.run.add(found);
    fi_cq_tagged_entry entry{};
    REQUIRE(fi_cq_read(rig.queue, &entry, 1) == 1);
    REQUIRE(fi_trecvmsg(rig.endpoint, &message, taking | FI_COMPLETION) == 0);
    CHECK(rig.last().kind == CommandKind::receive_claimed);
    CHECK(rig.last().claim == claim);
    CHECK(rig.last().length == (taking == FI_CLAIM ? sizeof buffer : 0));
    CHECK(fi_trecvmsg(rig.endpoint, &message, taking) == -FI_EINVAL);
    auto event = rig.answer(EventKind::received);
    event.length = 9;
    event.place_length = rig.last().length;
    event.buffer = rig.last().buffer;
    rig.run.add(event, 0, taking == FI_CLAIM ? "abcd" : "");
    CHECK(fi_cq_read(rig.queue, &entry, 1) == (taking == FI_CLAIM ? -FI_EAVAIL : 1));
  }
}

TEST_CASE("a cancelled receive is an error FI_ECANCELED; there is nothing else to cancel") {
  Rig rig;
  char buffer[4];
  int context = 0;
  REQUIRE(fi_trecv(rig.endpoint, buffer, sizeof buffer, nullptr, FI_ADDR_UNSPEC, 0, 0, &context) == 0);
  const std::uint64_t id = rig.last().context;
  REQUIRE(fi_cancel(&rig.endpoint->fid, &context) == 0);
  CHECK(rig.last().kind == CommandKind::cancel);
  CHECK(rig.last().context == id);
  rig.run.add(rig.answer(EventKind::cancelled));
  fi_cq_tagged_entry entry{};
  REQUIRE(fi_cq_read(rig.queue, &entry, 1) == -FI_EAVAIL);
  fi_cq_err_entry error{};
  REQUIRE(fi_cq_readerr(rig.queue, &error, 0) == 1);
  CHECK(error.err == FI_ECANCELED);
  CHECK(fi_cancel(&rig.endpoint->fid, &context) == -FI_ENOENT);
}

TEST_CASE("a full arena is -FI_EAGAIN, after one more try") {
  Rig rig;
  rig.run.pushes_to_refuse = 2;
  CHECK(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == -FI_EAGAIN);
  rig.run.pushes_to_refuse = 1;
  CHECK(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
  CHECK(rig.run.pushed.size() == 1);
}

TEST_CASE("arguments that the API forbids are refused before anything is pushed") {
  Rig rig;
  iovec parts[2] = {};
  CHECK(fi_tsendv(rig.endpoint, parts, nullptr, 2, 1, 0, nullptr) == -FI_EINVAL);
  CHECK(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, std::uint64_t{1} << 48, nullptr) == -FI_EINVAL);
  CHECK(fi_tsend(rig.endpoint, "a", 1, nullptr, 4, 0, nullptr) == -FI_EINVAL);  // the table has entries 0 to 3
  fi_msg message{};
  CHECK(fi_sendmsg(rig.endpoint, &message, FI_FENCE) == -FI_EINVAL);  // not asked for
  CHECK(fi_sendmsg(rig.endpoint, &message, FI_TRIGGER) == -FI_EBADFLAGS);
  CHECK(rig.run.pushed.empty());
}

TEST_CASE("a counter may be bound to an end-point that is enabled, and counts from then on") {
  Rig rig;
  fi_cntr_attr attributes{};
  fid_cntr* counter = nullptr;
  REQUIRE(fi_cntr_open(rig.domain, &attributes, &counter, nullptr) == 0);
  REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
  rig.run.add(rig.answer(EventKind::sent));
  CHECK(fi_cntr_read(counter) == 0);
  CHECK(fi_ep_bind(rig.endpoint, &counter->fid, FI_SEND | FI_WRITE) == -FI_EINVAL);  // FI_WRITE has one already
  REQUIRE(fi_ep_bind(rig.endpoint, &counter->fid, FI_SEND | FI_RECV) == 0);
  CHECK(fi_ep_bind(rig.endpoint, &rig.queue->fid, FI_RECV) == -FI_EOPBADSTATE);
  REQUIRE(fi_tsend(rig.endpoint, "a", 1, nullptr, 1, 0, nullptr) == 0);
  rig.run.add(rig.answer(EventKind::sent));
  CHECK(fi_cntr_read(counter) == 1);
  REQUIRE(fi_close(&rig.endpoint->fid) == 0);
  CHECK(fi_close(&counter->fid) == 0);
  REQUIRE(fi_endpoint(rig.domain, rig.info, &rig.endpoint, nullptr) == 0);
}

TEST_CASE("a receive ignores the flags that are a sender's, and a tagged one FI_MULTI_RECV") {
  Rig rig;
  char buffer[4];
  iovec part{buffer, sizeof buffer};
  fi_msg_tagged tagged{};
  tagged.msg_iov = &part;
  tagged.iov_count = 1;
  tagged.addr = FI_ADDR_UNSPEC;
  REQUIRE(fi_trecvmsg(rig.endpoint, &tagged, FI_COMPLETION | FI_REMOTE_CQ_DATA | FI_INJECT | FI_MULTI_RECV) == 0);
  CHECK(rig.last().kind == CommandKind::tagged_receive);
  CHECK((rig.last().flags & wire::command_flag::multi_receive) == 0);
  fi_msg message{};
  message.msg_iov = &part;
  message.iov_count = 1;
  message.addr = FI_ADDR_UNSPEC;
  REQUIRE(fi_recvmsg(rig.endpoint, &message, FI_REMOTE_CQ_DATA | FI_INJECT) == 0);
  CHECK(rig.last().kind == CommandKind::receive);
  CHECK(fi_recvmsg(rig.endpoint, &message, FI_FENCE) == -FI_EBADFLAGS);
  CHECK(fi_recvmsg(rig.endpoint, &message, FI_TRANSMIT_COMPLETE) == -FI_EBADFLAGS);
}

TEST_CASE("an event of an end-point that is closed is not reported to the record's next user") {
  Rig rig;
  int old_context = 0;
  char buffer[4];
  REQUIRE(fi_trecv(rig.endpoint, buffer, 4, nullptr, FI_ADDR_UNSPEC, 0, 0, &old_context) == 0);
  const auto stale = rig.answer(EventKind::received);
  REQUIRE(fi_close(&rig.endpoint->fid) == 0);
  CHECK(rig.last().kind == CommandKind::close_endpoint);
  REQUIRE(fi_endpoint(rig.domain, rig.info, &rig.endpoint, nullptr) == 0);
  REQUIRE(fi_ep_bind(rig.endpoint, &rig.addresses->fid, 0) == 0);
  REQUIRE(fi_ep_bind(rig.endpoint, &rig.queue->fid, FI_TRANSMIT | FI_RECV) == 0);
  REQUIRE(fi_enable(rig.endpoint) == 0);
  REQUIRE(fi_trecv(rig.endpoint, buffer, 4, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr) == 0);
  rig.run.add(stale);
  fi_cq_tagged_entry entry{};
  CHECK(fi_cq_read(rig.queue, &entry, 1) == -FI_EAGAIN);
}
