// Every legal change of state is made by real traffic, and no other is. The test cases of completion, flow control,
// messages and Gets by software are compiled into this program too; what they do not come to, the cases here do. The
// program fails when, after all of them, a change that a table allows has not been seen.
#include "core/nic/states.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <string>
#include <utility>

#include "core/nic/parcel.hpp"
#include "testing/work_stand.hpp"

namespace {

using Change = std::pair<unsigned, unsigned>;
std::map<const void*, std::map<Change, std::uint64_t>>& seen() {
  static std::map<const void*, std::map<Change, std::uint64_t>> changes;
  return changes;
}

// How many legal changes have not been seen.
template <class State, std::size_t size>
int unseen(const dryfly::StateTable<State, size>& table) {
  int missing = 0;
  for (unsigned from = 0; from < size; ++from) {
    for (unsigned to = 0; to < size; ++to) {
      const auto a = static_cast<State>(from);
      const auto b = static_cast<State>(to);
      if (!table.allows(a, b) || seen()[&table].count({from, to}) != 0) continue;
      std::printf("no traffic took %s from %s to %s\n", table.what(), table.name(a), table.name(b));
      ++missing;
    }
  }
  return missing;
}

}  // namespace

namespace dryfly {

void note_transition(const void* table, unsigned from, unsigned to) { ++seen()[table][{from, to}]; }

namespace nic {
namespace {

using Fate = FakeNetwork::Fate;
using Log = TestStand::Log;

Step step_of(const Transfer& transfer) { return Parcel::of_handle(transfer.handle).step; }

// How a child process ends that makes this change: by abort(), or with 0.
template <const auto& table, class State>
bool dies(std::initializer_list<State> way) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    close(STDERR_FILENO);
    StateMachine<State, table> machine;
    for (const State next : way) machine.move_to(next);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

TEST_CASE("a change of state that its table does not have ends the process") {
  using M = MessageState;
  CHECK_FALSE(dies<message_states, M>({M::arrived, M::placing, M::over}));
  CHECK(dies<message_states, M>({M::placing}));
  CHECK(dies<message_states, M>({M::arrived, M::placing, M::placing}));
  CHECK(dies<message_states, M>({M::arrived, M::over, M::coming}));
  CHECK(dies<source_states, SourceState>({SourceState::told, SourceState::told}));
  CHECK(dies<peer_states, PeerState>({PeerState::resumed}));
}

// The CPUs do at once what has been asked of them so far.
void work_now(Working& run) {
  for (const auto& [at, work] : std::exchange(run.stand.all_work, {})) run.stand.nics.worked(at, work);
}

TEST_CASE("a source withholds from the instant at which its CPU hears of the drop, and waits for what is under way") {
  Working run(4);  // one besides the overflow buffers
  for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.send(message(0, 2, 8, i));
  run.stand.at(1500 * ns, [&] { run.stand.nics.send(message(0, 2, 8, 2)); });
  run.stand.at(2100 * ns, [&] {  // the first drop is known since 2,010
    work_now(run);
    run.stand.nics.send(message(0, 2, 8, 3));
  });
  run.run();
  CHECK(run.totals().messages_refused >= 2);
  CHECK(run.totals().messages_replayed == run.totals().messages_refused);
  for (std::uint64_t i = 0; i < 4; ++i) run.stand.nics.receive(receive_of(2, 20 + i));
  run.run();
  CHECK(run.received_sends() == std::vector<std::uint64_t>{0, 1, 2, 3});
  CHECK(run.stand.nics.at_rest());
}

// Software matches at end-point 2, and may have one Get under way.
struct WithSoftware : Working {
  WithSoftware() : Working(1000) {
    EndpointSettings settings = mode(MatchMode::software);
    settings.software_gets = 1;
    reopen(2, settings);
    reopen(0, {.notifies_done = true});
  }
};

TEST_CASE("software that has seen requests without receives gets them one after the other when these are posted") {
  WithSoftware run;
  for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.send(message(0, 2, 100'000, i));
  run.run();
  for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.receive(receive_of(2, 20 + i));
  run.run();
  CHECK(run.received_sends() == std::vector<std::uint64_t>{0, 1});
  CHECK(run.stand.nics.at_rest());
}

TEST_CASE("a receive that is posted before software has looked at its request needs no second look") {
  WithSoftware run;
  run.stand.nics.send(message(0, 2, 100'000, 1));
  run.stand.run();
  run.stand.nics.receive(receive_of(2, 20));
  run.run();
  CHECK(run.done == std::vector<WorkKind>{WorkKind::software_get, WorkKind::tell_done});
  CHECK(run.received_sends() == std::vector<std::uint64_t>{1});
}

TEST_CASE("an end-point that closes lets go of its rendezvous wherever software has come to") {
  for (const bool has_receives : {true, false}) {
    for (int steps = 0; steps < (has_receives ? 4 : 2); ++steps) {
      WithSoftware run;
      for (std::uint64_t i = 0; has_receives && i < 2; ++i) run.stand.nics.receive(receive_of(2, 20 + i));
      for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.send(message(0, 2, 100'000, i));
      run.stand.run();
      for (int i = 0; i < steps; ++i) {
        work_now(run);
        run.stand.run();
      }
      run.stand.nics.close_endpoint(EndpointId{2});
      // What was asked of the CPU before does no harm to whoever has its place.
      run.stand.nics.open_endpoint(EndpointId{2}, NicId{1}, NodeId{1});
      run.run();
      CHECK(run.received_sends().size() == (steps >= 2 ? 1 : 0));  // the first after two steps
      int sent = 0;
      for (const std::string& line : run.stand.log) sent += line.find(" sent ") != std::string::npos ? 1 : 0;
      CHECK(sent == 2);
      CHECK(run.stand.nics.at_rest());
    }
  }
}

TEST_CASE("a request that the network loses fails at its source, whatever its protocol") {
  for (const std::uint64_t size : {8, 4096, 100'000}) {
    TestStand stand;
    stand.network.fate = [](const Transfer&) { return Fate::lost; };
    stand.nics.send(message(0, 2, size, 10));
    stand.run();
    const std::string at = size == 8 ? "1800" : "2100";
    CHECK(stand.log == Log{at + " dropped 10", at + " send_failed 10 from 0 error 113"});
    CHECK(stand.nics.at_rest());
  }
}

TEST_CASE("a message whose acknowledgement is lost is received, and its source hears of a failure") {
  TestStand stand;
  stand.network.fate = [](const Transfer&) { return Fate::unanswered; };
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(message(0, 2, 8, 10));
  stand.run();
  CHECK(stand.log == Log{"1300 received 10 in 20 at 2", "1800 send_failed 10 from 0 error 113"});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("a rendezvous whose Get, data or done message is lost fails where it has not been told") {
  for (const Step lost : {Step::get_request, Step::get_data, Step::done}) {
    for (const bool by_nic : {true, false}) {
      NicSpec spec = TestStand::round_figures();
      spec.gets_by_nic = by_nic;
      Working run(spec);
      run.reopen(0, {.notifies_done = !by_nic});
      run.stand.network.fate = [&](const Transfer& each) { return step_of(each) == lost ? Fate::lost : Fate::arrives; };
      run.stand.nics.receive(receive_of(2, 20));
      run.stand.nics.send(message(0, 2, 100'000, 10));
      run.run();
      // Of a done message the target's NIC has said that it is placed; a CPU waits for its acknowledgement.
      const bool received = lost == Step::done && by_nic;
      CHECK(run.received_sends().size() == (received ? 1 : 0));
      CHECK(run.stand.log.back().find("send_failed 10 from 0 error 113") != std::string::npos);
      CHECK(run.stand.nics.at_rest());
    }
  }
}

TEST_CASE("a done message that is quicker than the acknowledgement of its request ends the send") {
  TestStand stand;
  stand.network.acknowledgement_time = {20'000 * ns};
  stand.nics.receive(receive_of(2, 20));
  stand.nics.send(message(0, 2, 100'000, 10));
  stand.run();
  CHECK(stand.log == Log{"4100 received 10 in 20 at 2", "5100 sent 10 from 0"});
  CHECK(stand.nics.at_rest());
}

TEST_CASE("a message that is refused after its send was complete is sent again, and complete no second time") {
  NicSpec spec = Working::with_entries(4);  // one besides the overflow buffers
  spec.socket_latency = {90 * ns};
  Working run(spec);
  run.stand.network.acknowledgement_time = {50 * ns};
  run.stand.nics.close_endpoint(EndpointId{2});
  run.stand.nics.open_endpoint(EndpointId{4}, NicId{3}, NodeId{2}, {}, {.socket = 0, .nic_socket = 1});
  for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.send(message(0, 4, 8, i));
  run.run();
  CHECK(run.totals().messages_replayed == 1);
  for (std::uint64_t i = 0; i < 2; ++i) run.stand.nics.receive(receive_of(4, 20 + i));
  run.run();
  CHECK(run.received_sends() == std::vector<std::uint64_t>{0, 1});
  CHECK(run.stand.nics.at_rest());
  int sent = 0;
  for (const std::string& line : run.stand.log) sent += line.find(" sent ") != std::string::npos ? 1 : 0;
  CHECK(sent == 2);
}

TEST_CASE("a rendezvous of whose parts one is lost fails once, and the next goes on") {
  for (const Fate fate : {Fate::lost, Fate::unanswered}) {
    for (int which = 0; which < 4; ++which) {
      NicSpec spec = TestStand::round_figures();
      spec.get_queues = {.of_rendezvous = 1, .of_reads = 1, .window = Bytes{128 * 1024}, .packet = Bytes{2048}};
      Working run(spec);
      int parts = 0;
      run.stand.network.fate = [&](const Transfer& each) {
        return step_of(each) == Step::get_part && parts++ == which ? fate : Fate::arrives;
      };
      run.stand.nics.receive(receive_of(2, 20));
      run.stand.nics.send(message(0, 2, 500'000, 10));
      run.run();
      run.stand.nics.receive(receive_of(2, 21));
      run.stand.nics.send(message(0, 2, 500'000, 11));
      run.run();
      // With all of its parts there the first is received, whatever became of an acknowledgement.
      int failed = 0;
      for (const std::string& line : run.stand.log) {
        failed += line.find("send_failed 10 from 0 error 113") != std::string::npos ? 1 : 0;
      }
      CHECK(failed == (fate == Fate::lost ? 1 : 0));
      CHECK(run.received_sends() ==
            (fate == Fate::lost ? std::vector<std::uint64_t>{11} : std::vector<std::uint64_t>{10, 11}));
      CHECK(run.stand.nics.at_rest());
    }
  }
}

TEST_CASE("what waits for a word of flow control that is lost fails, refused or withheld") {
  for (const Step lost : {Step::drop_notice, Step::resume}) {
    Working run(4);
    run.stand.network.fate = [&](const Transfer& each) { return step_of(each) == lost ? Fate::lost : Fate::arrives; };
    for (std::uint64_t i = 0; i < 3; ++i) run.stand.nics.send(message(0, 2, 8, i));
    run.stand.run();
    work_now(run);
    run.stand.nics.send(message(0, 2, 8, 3));
    run.run();
    int failed = 0;
    for (const std::string& line : run.stand.log) failed += line.find("send_failed") != std::string::npos ? 1 : 0;
    CHECK(failed == 3);
  }
}

TEST_CASE("messages for another network are turned away, also when the answer is quicker than the ingress stage") {
  for (const std::uint64_t answer : {50, 700}) {
    NicSpec spec = TestStand::round_figures();
    spec.socket_latency = {90 * ns};
    TestStand stand(spec);
    stand.network.acknowledgement_time = {answer * ns};
    stand.nics.open_endpoint(EndpointId{4}, NicId{3}, NodeId{2}, {.network = 7}, {.socket = 0, .nic_socket = 1});
    stand.nics.send(message(0, 4, 8, 10));
    stand.run();
    CHECK(stand.log.size() == 2);
    CHECK(stand.log.back().find("send_failed 10 from 0 error 107") != std::string::npos);
    CHECK(stand.nics.at_rest());
  }
}

}  // namespace
}  // namespace nic
}  // namespace dryfly

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int failed = context.run();
  if (context.shouldExit() || failed != 0) return failed;
  using namespace dryfly::nic;
  return unseen(message_states) + unseen(source_states) + unseen(peer_states) == 0 ? 0 : 1;
}
