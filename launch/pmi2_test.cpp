#include "launch/pmi2.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/unit/random.hpp"
#include "launch/pmi.hpp"

using dryfly::launch::PmiServer;

namespace {

constexpr std::string_view init = "cmd=init pmi_version=2 pmi_subversion=0\n";

// With its length in front.
std::string framed(std::string_view message) {
  char length[16];
  std::snprintf(length, sizeof length, "%6zu", message.size());
  return length + std::string(message);
}

std::string taken(PmiServer& server, int rank) {
  server.take_answered();
  return std::exchange(server.outgoing(rank), {});
}

std::string ask(PmiServer& server, int rank, std::string_view message) {
  server.receive(rank, framed(message));
  return taken(server, rank);
}

// All ranks have said that they speak PMI-2.
void begin_all(PmiServer& server, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    server.receive(rank, init);
    REQUIRE(taken(server, rank) == "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n");
  }
}

}  // namespace

TEST_CASE("PMI-2 begins with PMI-1's handshake, and then each message says its length") {
  PmiServer server("job", {0, 0, 1});
  server.receive(1, "cmd=watched\n" + std::string(init) + framed("cmd=fullinit;pmirank=1;thrid=0x7f;"));
  CHECK(taken(server, 1) == "cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n" +
                                framed("cmd=fullinit-response;thrid=0x7f;rc=0;rank=1;size=3;appnum=0;pmiverbose=0;"));
  CHECK(server.phase(1) == PmiServer::Phase::initialised);
  CHECK_FALSE(server.unwatched());
  // Written out once: 38 characters follow.
  CHECK(ask(server, 1, "cmd=job-getid;") == "    38cmd=job-getid-response;rc=0;jobid=job;");
  CHECK(ask(server, 1, "cmd=finalize;thrid=0x7f;") == framed("cmd=finalize-response;thrid=0x7f;rc=0;"));
  CHECK(server.phase(1) == PmiServer::Phase::finalised);
}

TEST_CASE("the preload's word that a rank has left MPI is a line among messages") {
  PmiServer server("job", {0, 0, 1});
  begin_all(server, 2);
  server.receive(1, "cmd=left\n");
  CHECK(taken(server, 1).empty());
  CHECK(server.phase(1) == PmiServer::Phase::finalised);
  CHECK(ask(server, 1, "cmd=finalize;") == framed("cmd=finalize-response;rc=0;"));
}

TEST_CASE("attributes of the job are where its ranks are and how many there are") {
  PmiServer server("job", {0, 0, 1});
  begin_all(server, 1);
  CHECK(ask(server, 0, "cmd=info-getjobattr;key=PMI_process_mapping;") ==
        framed("cmd=info-getjobattr-response;rc=0;found=TRUE;value=(vector,(0,1,2),(1,1,1));"));
  CHECK(ask(server, 0, "cmd=info-getjobattr;key=universeSize;") ==
        framed("cmd=info-getjobattr-response;rc=0;found=TRUE;value=3;"));
  CHECK(ask(server, 0, "cmd=info-getjobattr;key=PMI_hwloc_xmlfile;") ==
        framed("cmd=info-getjobattr-response;rc=0;found=FALSE;"));
}

TEST_CASE("a mapping that the client would cut is not given") {
  // As in pmi_test.cpp: 200 nodes with 1 and 2 ranks by turns need 1898 bytes, and a client has room for 1023.
  std::vector<int> node_of_rank;
  for (int node = 0; node < 200; ++node) node_of_rank.insert(node_of_rank.end(), node % 2 == 0 ? 1 : 2, node);
  PmiServer server("job", node_of_rank);
  begin_all(server, 1);
  CHECK(ask(server, 0, "cmd=info-getjobattr;key=PMI_process_mapping;") ==
        framed("cmd=info-getjobattr-response;rc=0;found=FALSE;"));
}

TEST_CASE("what one rank puts another one gets, verbatim, and a fence opens when all have come") {
  PmiServer server("job", {0, 1});
  begin_all(server, 2);
  CHECK(ask(server, 0, "cmd=kvs-put;key=card-0;value=a\\ b=c\nd;") == framed("cmd=kvs-put-response;rc=0;"));
  CHECK(ask(server, 0, "cmd=kvs-put;key=PMI_process_mapping;value=x;") ==
        framed("cmd=kvs-put-response;rc=-1;errmsg=key_is_reserved;"));
  CHECK(ask(server, 0, "cmd=kvs-fence;thrid=0xa;").empty());
  server.receive(1, framed("cmd=kvs-fence;thrid=0xb;"));
  CHECK(taken(server, 0) == framed("cmd=kvs-fence-response;thrid=0xa;rc=0;"));
  CHECK(taken(server, 1) == framed("cmd=kvs-fence-response;thrid=0xb;rc=0;"));
  CHECK(ask(server, 1, "cmd=kvs-get;jobid=job;srcid=0;key=card-0;") ==
        framed("cmd=kvs-get-response;rc=0;found=TRUE;value=a\\ b=c\nd;"));
  CHECK(ask(server, 1, "cmd=kvs-get;jobid=job;srcid=-1;key=card-1;") ==
        framed("cmd=kvs-get-response;rc=0;found=FALSE;"));
}

TEST_CASE("two threads of a rank wait in the fence, each for its own") {
  PmiServer server("job", {0, 1});
  begin_all(server, 2);
  server.receive(0, framed("cmd=kvs-fence;thrid=0x1;") + framed("cmd=kvs-fence;thrid=0x2;"));
  CHECK(taken(server, 0).empty());
  server.receive(1, framed("cmd=kvs-fence;"));
  CHECK(taken(server, 0) == framed("cmd=kvs-fence-response;thrid=0x1;rc=0;"));
  server.receive(1, framed("cmd=kvs-fence;"));
  CHECK(taken(server, 0) == framed("cmd=kvs-fence-response;thrid=0x2;rc=0;"));
}

TEST_CASE("who waits for an attribute of its node gets it when a rank of that node puts it") {
  PmiServer server("job", {0, 0, 1});
  begin_all(server, 3);
  CHECK(ask(server, 0, "cmd=info-getnodeattr;key=segment;") ==
        framed("cmd=info-getnodeattr-response;rc=0;found=FALSE;"));
  CHECK(ask(server, 0, "cmd=info-getnodeattr;key=segment;wait=TRUE;thrid=0xc;").empty());
  CHECK(ask(server, 2, "cmd=info-putnodeattr;key=segment;value=other;") ==
        framed("cmd=info-putnodeattr-response;rc=0;"));
  CHECK(ask(server, 1, "cmd=info-putnodeattr;key=another;value=1;") == framed("cmd=info-putnodeattr-response;rc=0;"));
  CHECK(taken(server, 0).empty());
  ask(server, 1, "cmd=info-putnodeattr;key=segment;value=/shm;");
  CHECK(taken(server, 0) == framed("cmd=info-getnodeattr-response;thrid=0xc;rc=0;found=TRUE;value=/shm;"));
  CHECK(ask(server, 2, "cmd=info-getnodeattr;key=segment;wait=TRUE;") ==
        framed("cmd=info-getnodeattr-response;rc=0;found=TRUE;value=other;"));
  CHECK(ask(server, 2, "cmd=info-putnodeattr;key=PMI_x;value=1;") ==
        framed("cmd=info-putnodeattr-response;rc=-1;errmsg=key_is_reserved;"));
}

TEST_CASE("published names are found until they are withdrawn, by PMI-2") {
  PmiServer server("job", {0});
  begin_all(server, 1);
  CHECK(ask(server, 0, "cmd=name-lookup;name=ocean;") ==
        framed("cmd=name-lookup-response;rc=1;errmsg=service_not_found;"));
  CHECK(ask(server, 0, "cmd=name-publish;name=ocean;port=tag#0$x;") == framed("cmd=name-publish-response;rc=0;"));
  CHECK(ask(server, 0, "cmd=name-publish;name=ocean;port=y;") ==
        framed("cmd=name-publish-response;rc=1;errmsg=duplicate_service;"));
  CHECK(ask(server, 0, "cmd=name-lookup;name=ocean;") == framed("cmd=name-lookup-response;rc=0;port=tag#0$x;"));
  CHECK(ask(server, 0, "cmd=name-unpublish;name=ocean;") == framed("cmd=name-unpublish-response;rc=0;"));
  CHECK(ask(server, 0, "cmd=name-unpublish;name=ocean;") ==
        framed("cmd=name-unpublish-response;rc=1;errmsg=service_not_found;"));
}

TEST_CASE("an abort is remembered, and what is not served is refused") {
  PmiServer server("job", {0, 1});
  begin_all(server, 2);
  CHECK(ask(server, 0, "cmd=spawn;ncmds=1;preputcount=0;subcmd=a.out;maxprocs=2;argc=0;infokeycount=0;") ==
        framed("cmd=spawn-response;rc=-1;errmsg=dynamic_processes_are_not_served;"));
  CHECK(ask(server, 0, "cmd=job-connect;jobid=x;") ==
        framed("cmd=job-connect-response;rc=-1;errmsg=dynamic_processes_are_not_served;"));
  CHECK(ask(server, 0, "cmd=sing;") == framed("cmd=sing-response;rc=-1;errmsg=not_served;"));
  CHECK(ask(server, 1, "cmd=abort;exitcode=-1;message=no more;").empty());
  REQUIRE(server.abort());
  CHECK(server.abort()->rank == 1);
  CHECK(server.abort()->code == -1);
}

TEST_CASE("an MPI that begins once more says so by a line again") {
  PmiServer server("job", {0});
  begin_all(server, 1);
  begin_all(server, 1);
  CHECK(ask(server, 0, "cmd=finalize;") == framed("cmd=finalize-response;rc=0;"));
}

TEST_CASE("after a message without length the rank is told so once and not listened to") {
  PmiServer server("job", {0});
  begin_all(server, 1);
  server.receive(0, "length");
  CHECK(taken(server, 0) == framed("cmd=error-response;rc=-1;errmsg=message_without_length;"));
  CHECK(ask(server, 0, "cmd=job-getid;").empty());
  for (const std::string_view none : {"      ", "    -1", "  1 2 ", "0x0010"}) {
    PmiServer other("job", {0});
    begin_all(other, 1);
    other.receive(0, none);
    CHECK(taken(other, 0) == framed("cmd=error-response;rc=-1;errmsg=message_without_length;"));
  }
}

TEST_CASE("messages mean the same however the bytes are cut") {
  const std::vector<std::string> requests{
      std::string(init),
      framed("cmd=fullinit;pmirank=0;thrid=0x1;"),
      framed("cmd=kvs-put;key=a;value=1 2\n3;thrid=0x1;"),
      framed("cmd=kvs-get;key=a;"),
      framed("cmd=kvs-get;key=b;"),
      framed("cmd=kvs-fence;thrid=0x2;"),
      framed("cmd=info-getnodeattr;key=n;wait=TRUE;thrid=0x3;"),
      framed("cmd=info-putnodeattr;key=n;value=v;"),
      framed("cmd=nonsense;;x=;=y;=="),
      framed(""),
      framed("cmd"),
      framed("cmd=finalize;"),
      "what is this?\n",
  };
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    const dryfly::RandomStream random(22, trial, dryfly::Purpose::test);
    std::uint64_t draw = 0;
    std::string stream(init);
    const auto count = 1 + random.below(draw++, 30);
    for (std::uint32_t i = 0; i < count; ++i) {
      stream += requests[random.below(draw++, static_cast<std::uint32_t>(requests.size()))];
    }
    PmiServer whole("job", {0});
    whole.receive(0, stream);
    const std::string expected = taken(whole, 0);

    PmiServer cut("job", {0});
    std::string got;
    for (std::string_view left = stream; !left.empty();) {
      const auto size = std::min<std::size_t>(left.size(), 1 + random.below(draw++, 40));
      cut.receive(0, left.substr(0, size));
      got += taken(cut, 0);
      left.remove_prefix(size);
    }
    REQUIRE(got == expected);
  }
}

TEST_CASE("no message upsets the server of PMI-2") {
  const std::string_view alphabet = "cmd=kvs-putgetinfo-nodeattr;;==key value wait=TRUE 0123\\\n;thrid";
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    const dryfly::RandomStream random(23, trial, dryfly::Purpose::test);
    PmiServer server("job", {0, 0});
    begin_all(server, 2);
    std::uint64_t draw = 0;
    for (int i = 0; i < 10; ++i) {
      std::string message = trial % 2 == 0 ? "" : "cmd=info-getnodeattr;";
      const auto size = random.below(draw++, 60);
      for (std::uint32_t j = 0; j < size; ++j) {
        message += alphabet[random.below(draw++, static_cast<std::uint32_t>(alphabet.size()))];
      }
      server.receive(static_cast<int>(trial % 2), framed(message));
    }
    CHECK(ask(server, 0, "cmd=job-getid;").ends_with("cmd=job-getid-response;rc=0;jobid=job;"));
  }
}
