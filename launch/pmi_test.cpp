#include "launch/pmi.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "core/unit/random.hpp"

using dryfly::launch::PmiServer;
using dryfly::launch::process_mapping;

namespace {

std::string taken(PmiServer& server, int rank) {
  server.take_answered();
  return std::exchange(server.outgoing(rank), {});
}

std::string ask(PmiServer& server, int rank, std::string_view command) {
  server.receive(rank, command);
  return taken(server, rank);
}

}  // namespace

TEST_CASE("the process mapping lists runs of nodes with equally many ranks") {
  CHECK(process_mapping({0}) == "(vector,(0,1,1))");
  CHECK(process_mapping({0, 0, 1, 1, 2, 2}) == "(vector,(0,3,2))");
  CHECK(process_mapping({0, 0, 0, 1, 1, 2}) == "(vector,(0,1,3),(1,1,2),(2,1,1))");
}

TEST_CASE("the process mapping numbers nodes by first appearance, so that scattered nodes need one run") {
  CHECK(process_mapping({912, 912, 7, 7, 388, 388}) == "(vector,(0,3,2))");
  CHECK(process_mapping({5, 9, 5, 9}) == "(vector,(0,2,1),(0,2,1))");
}

TEST_CASE("a client learns the protocol version, its limits and the job") {
  PmiServer server("job", {0, 0, 1});
  CHECK(ask(server, 0, "cmd=init pmi_version=1 pmi_subversion=1\n") ==
        "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n");
  CHECK(ask(server, 0, "cmd=get_maxes\n") == "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024\n");
  CHECK(ask(server, 0, "cmd=get_appnum\n") == "cmd=appnum rc=0 appnum=0\n");
  CHECK(ask(server, 0, "cmd=get_my_kvsname\n") == "cmd=my_kvsname rc=0 kvsname=job\n");
  CHECK(ask(server, 0, "cmd=get_universe_size\n") == "cmd=universe_size rc=0 size=3\n");
  CHECK(ask(server, 0, "cmd=get kvsname=job key=PMI_process_mapping\n") ==
        "cmd=get_result rc=0 value=(vector,(0,1,2),(1,1,1))\n");
}

TEST_CASE("a mapping longer than hydra's longest value raises the limit the client is told") {
  // Rank counts per node alternate between 1 and 2, so each of the 200 nodes is a run of its own. A run takes
  // "(N,1,K)," = 7 + digits of N: 10 * 8 + 90 * 9 + 100 * 10 = 1890 bytes, of which the last comma is not there,
  // and "(vector," and ")" add 9: 1898 bytes and the terminating zero.
  std::vector<int> node_of_rank;
  for (int node = 0; node < 200; ++node) node_of_rank.insert(node_of_rank.end(), node % 2 == 0 ? 1 : 2, node);
  PmiServer server("job", node_of_rank);
  CHECK(ask(server, 0, "cmd=get_maxes\n") == "cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1899\n");
}

TEST_CASE("what one rank puts another one gets, verbatim, and the last put counts") {
  PmiServer server("job", {0, 1});
  CHECK(ask(server, 0, "cmd=put kvsname=job key=card-0 value=00a1=\\ b\n") == "cmd=put_result rc=0\n");
  CHECK(ask(server, 1, "cmd=get kvsname=job key=card-0\n") == "cmd=get_result rc=0 value=00a1=\\ b\n");
  ask(server, 0, "cmd=put kvsname=job key=card-0 value=2\n");
  CHECK(ask(server, 1, "cmd=get kvsname=job key=card-0\n") == "cmd=get_result rc=0 value=2\n");
  CHECK(ask(server, 1, "cmd=get kvsname=job key=card-1\n") == "cmd=get_result rc=1 msg=key_not_found\n");
  CHECK(ask(server, 1, "cmd=put key=PMI_process_mapping value=x\n") == "cmd=put_result rc=-1 msg=key_is_reserved\n");
}

TEST_CASE("a barrier opens for all when the last rank comes, and serves again") {
  PmiServer server("job", {0, 0, 0});
  for (int round = 0; round < 2; ++round) {
    CHECK(ask(server, 2, "cmd=barrier_in\n").empty());
    CHECK(ask(server, 0, "cmd=barrier_in\n").empty());
    server.receive(1, "cmd=barrier_in\n");
    CHECK(server.take_answered().size() == 3);
    for (int rank = 0; rank < 3; ++rank) CHECK(taken(server, rank) == "cmd=barrier_out rc=0 tag=0\n");
  }
}

TEST_CASE("barriers of groups overlap: each has its members and its tag") {
  PmiServer server("job", {0, 0, 1, 1});
  CHECK(ask(server, 0, "cmd=barrier_in group=0,2:17\n").empty());
  CHECK(ask(server, 0, "cmd=barrier_in group=NODE:4\n").empty());
  server.receive(1, "cmd=barrier_in group=NODE:4\n");
  CHECK(taken(server, 0) == "cmd=barrier_out rc=0 tag=4\n");
  CHECK(taken(server, 1) == "cmd=barrier_out rc=0 tag=4\n");
  server.receive(2, "cmd=barrier_in group=0,2:17\n");
  CHECK(taken(server, 0) == "cmd=barrier_out rc=0 tag=17\n");
  CHECK(taken(server, 2) == "cmd=barrier_out rc=0 tag=17\n");
  CHECK(ask(server, 3, "cmd=barrier_in group=0,2:17\n") == "cmd=barrier_out rc=-1 tag=0 msg=bad_group\n");
  CHECK(ask(server, 3, "cmd=barrier_in group=0,9\n") == "cmd=barrier_out rc=-1 tag=0 msg=bad_group\n");
  CHECK(ask(server, 3, "cmd=barrier_in group=ALL\n") == "cmd=barrier_out rc=-1 tag=0 msg=bad_group\n");
}

TEST_CASE("a rank may be a round ahead in a barrier") {
  PmiServer server("job", {0, 1});
  CHECK(ask(server, 0, "cmd=barrier_in group=WORLD:1\ncmd=barrier_in group=WORLD:1\n").empty());
  const std::string out = "cmd=barrier_out rc=0 tag=1\n";
  server.receive(1, "cmd=barrier_in group=WORLD:1\n");
  CHECK(taken(server, 0) == out);
  CHECK(taken(server, 1) == out);
  server.receive(1, "cmd=barrier_in group=WORLD:1\n");
  CHECK(taken(server, 0) == out);
  CHECK(taken(server, 1) == out);
}

TEST_CASE("init, finalize and abort are remembered by rank") {
  PmiServer server("job", {0, 1});
  using Phase = PmiServer::Phase;
  CHECK_FALSE(server.anyone_initialised());
  server.receive(1, "cmd=init pmi_version=1 pmi_subversion=1\n");
  CHECK(server.phase(0) == Phase::untouched);
  CHECK(server.phase(1) == Phase::initialised);
  CHECK(server.anyone_initialised());
  taken(server, 1);
  CHECK(ask(server, 1, "cmd=finalize\n") == "cmd=finalize_ack rc=0\n");
  CHECK(server.phase(1) == Phase::finalised);
  CHECK_FALSE(server.abort());
  CHECK(ask(server, 0, "cmd=abort exitcode=-3 message=two words\n").empty());
  server.receive(1, "cmd=abort exitcode=5\n");
  REQUIRE(server.abort());
  CHECK(server.abort()->rank == 0);
  CHECK(server.abort()->code == -3);
}

TEST_CASE("an MPI that begins without the preload's word is noted, the first one") {
  PmiServer server("job", {0, 1, 2});
  server.receive(1, "cmd=watched\ncmd=init pmi_version=1 pmi_subversion=1\n");
  CHECK(taken(server, 1) == "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n");
  CHECK_FALSE(server.unwatched());
  server.receive(2, "cmd=init pmi_version=1 pmi_subversion=1\n");
  server.begin(0);
  CHECK(server.unwatched() == 2);
}

TEST_CASE("who says that it has left MPI has ended as it should, whether or not a finalize follows") {
  PmiServer server("job", {0, 1});
  server.receive(0, "cmd=watched\ncmd=init pmi_version=1 pmi_subversion=1\n");
  taken(server, 0);
  CHECK(ask(server, 0, "cmd=left\n").empty());
  CHECK(server.phase(0) == PmiServer::Phase::finalised);
  CHECK(ask(server, 0, "cmd=finalize\n") == "cmd=finalize_ack rc=0\n");
  CHECK(server.phase(0) == PmiServer::Phase::finalised);
  CHECK(server.phase(1) == PmiServer::Phase::untouched);
}

TEST_CASE("published names are found until they are withdrawn") {
  PmiServer server("job", {0, 1});
  CHECK(ask(server, 0, "cmd=lookup_name service=ocean\n") == "cmd=lookup_result rc=1 msg=service_not_found\n");
  CHECK(ask(server, 0, "cmd=publish_name service=ocean port=tag#0$x\n") == "cmd=publish_result rc=0\n");
  CHECK(ask(server, 1, "cmd=publish_name service=ocean port=y\n") == "cmd=publish_result rc=1 msg=duplicate_service\n");
  CHECK(ask(server, 1, "cmd=lookup_name service=ocean\n") == "cmd=lookup_result rc=0 port=tag#0$x\n");
  CHECK(ask(server, 0, "cmd=unpublish_name service=ocean\n") == "cmd=unpublish_result rc=0\n");
  CHECK(ask(server, 0, "cmd=unpublish_name service=ocean\n") == "cmd=unpublish_result rc=1 msg=service_not_found\n");
}

TEST_CASE("what is not served is refused, once for each request") {
  PmiServer server("job", {0});
  CHECK(ask(server, 0, "cmd=getbyidx idx=0\n") == "cmd=getbyidx_result rc=-1 msg=not_served\n");
  CHECK(ask(server, 0, "cmd=init pmi_version=3 pmi_subversion=0\n") ==
        "cmd=response_to_init rc=-1 msg=only_PMI_1_and_2_are_served\n");
  CHECK(server.phase(0) == PmiServer::Phase::untouched);
  const std::string spawn =
      "mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=2\nspawnssofar=1\nargcnt=0\ninfo_num=0\nendcmd\n"
      "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\nargcnt=0\ninfo_num=0\nendcmd\n";
  CHECK(ask(server, 0, spawn + "cmd=get_appnum\n") ==
        "cmd=spawn_result rc=-1 msg=dynamic_processes_are_not_served\ncmd=appnum rc=0 appnum=0\n");
}

TEST_CASE("a line without end is refused instead of being kept") {
  PmiServer server("job", {0});
  const std::string megabyte(1 << 20, 'x');
  CHECK(ask(server, 0, megabyte).empty());
  CHECK(ask(server, 0, "x") == "cmd=error rc=-1 msg=line_too_long\n");
}

TEST_CASE("commands mean the same however the bytes are cut") {
  const std::vector<std::string> commands{
      "cmd=init pmi_version=1 pmi_subversion=1\n",
      "cmd=get_maxes\n",
      "cmd=put kvsname=job key=a value=1\\ 2\n",
      "cmd=put key=a value=3\n",
      "cmd=get kvsname=job key=a\n",
      "cmd=get key=b\n",
      "cmd=barrier_in\n",
      "cmd=barrier_in group=0:3\n",
      "mcmd=spawn\nexecname=a b\ntotspawns=1\nspawnssofar=1\nendcmd\n",
      "cmd=nonsense  x= =y ==\n",
      "\n",
      "cmd=\\\n",
      "cmd=publish_name service=s port=p\n",
      "cmd=finalize\n",
  };
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    const dryfly::RandomStream random(20, trial, dryfly::Purpose::test);
    std::uint64_t draw = 0;
    std::string stream;
    const auto count = 1 + random.below(draw++, 30);
    for (std::uint32_t i = 0; i < count; ++i) {
      stream += commands[random.below(draw++, static_cast<std::uint32_t>(commands.size()))];
    }
    PmiServer whole("job", {0});
    const std::string expected = ask(whole, 0, stream);

    PmiServer cut("job", {0});
    std::string got;
    for (std::string_view left = stream; !left.empty();) {
      const auto size = std::min<std::size_t>(left.size(), 1 + random.below(draw++, 40));
      got += ask(cut, 0, left.substr(0, size));
      left.remove_prefix(size);
    }
    REQUIRE(got == expected);
  }
}

TEST_CASE("no sequence of bytes upsets the server") {
  const std::string_view alphabet = "cmd=getputbarrier_in key value,:0123\\ \n\n=abort exitcode";
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    const dryfly::RandomStream random(21, trial, dryfly::Purpose::test);
    std::string bytes = trial % 2 == 0 ? "" : "cmd=barrier_in group=";
    for (std::uint64_t i = 0; i < 200; ++i) {
      bytes += alphabet[random.below(i, static_cast<std::uint32_t>(alphabet.size()))];
    }
    PmiServer server("job", {0, 0});
    server.receive(static_cast<int>(trial % 2), bytes);
    CHECK(ask(server, 0, "\ncmd=get_appnum\n").ends_with("cmd=appnum rc=0 appnum=0\n"));
  }
}
