// The MPI functions that begin and end a rank. Virtual time begins when MPI_Init has come back in every rank and ends
// when MPI_Finalize has begun in every rank; Init and Finalize themselves talk to the process manager and take none.
//
// Sessions: the first MPI_Session_init that joins the run begins it as MPI_Init does. A library would go down with the
// last session and come up again with the next, by exchanges with the process manager that virtual time knows nothing
// of (Open MPI 5.0 does not survive it). So the preload keeps a session of its own from then on, and those of the
// program come and go like any other call. Nobody knows which is the last: without MPI_Init virtual time ends when the
// process exits, and what it computes behind its last session does not count. Where MPI_Init is called as well, the
// last to be closed, MPI_COMM_WORLD or a session, is the end. A session is taken to be MPI_THREAD_MULTIPLE.
#include <stdlib.h>

#include <atomic>

#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/clock/software.hpp"
#include "preload/export.hpp"
#include "preload/launcher_line.hpp"
#include "preload/memory/first_requests.hpp"
#include "preload/memory/heap_end.hpp"
#include "preload/memory/node_memory.hpp"
#include "preload/mpi/call_record.hpp"
#include "preload/mpi/expected_mpi.hpp"
#include "preload/mpi/failing.hpp"
#include "preload/mpi/mpi_calls.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/mpi/nic_wish.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

using rank::CallMode;
using wire::GateKind;

enum class World : std::uint32_t { untouched, open, closed };

std::atomic<World> world{World::untouched};
std::atomic<std::uint32_t> sessions{0};  // of the program, open
constinit long kept_session = 0;         // our own; as wide as any library's handle
std::atomic<bool> keeps_session{false};
std::atomic<bool> exiting{false};  // the process exits, and a session was open when it began to

template <typename... Words>
int pmpi(const char* name, Words... words) {
  return reinterpret_cast<int (*)(Words...)>(find_pmpi(name))(words...);
}

Callers callers_by(int provided) {
  if (provided == constants().thread_multiple) return Callers::several;
  return provided == constants().thread_serialized ? Callers::all_in_turn : Callers::main_thread;
}

void set_mode(CallMode mode) {
  dryfly_self.call_mode.store(static_cast<std::uint32_t>(mode), std::memory_order_relaxed);
}

// Begins the run if the library has joined it.
void begin_run(Call by, Callers callers) {
  if (phase() != Phase::before || dryfly_self.attached.load(std::memory_order_acquire) == 0) return;
  dryfly_self.gate(GateKind::start);
  set_phase(Phase::running);
  note_call(static_cast<std::uint32_t>(by));
  open_ledger(callers);
  open_compute();
  open_call_record();
  open_software();
  // Only where what a buffer costs depends on where it lies.
  if (dryfly_self.header->costs.registration.page_bytes != 0) align_heap_end();
  begin_gap();
}

// MPI_Init and its like: `initialise` calls the library, `callers` says afterwards what it has granted.
template <typename Initialise, typename Granted>
int initialise_rank(Call by, Initialise initialise, Granted callers) {
  const Nesting nesting;
  if (!nesting.outermost() || phase() == Phase::running) return initialise();
  require_expected_mpi();
  become_rank();
  wish_for_nic();
  watch_copies();
  set_mode(CallMode::outside);
  tell_launcher("initialised");
  tell_pmi_server(PmiWord::watched);
  const int status = initialise();
  const bool joined = status == 0 && dryfly_self.attached.load(std::memory_order_acquire) != 0;
  // A session opens the network with its first communicator.
  if (status == 0 && !joined && by != Call::Session_init && belongs_to_run()) end_for_other_network();
  if (joined && by != Call::Session_init && abi() != Abi::open_mpi) {
    dryfly_self.first_requests = make_first_requests();
  }
  set_mode(CallMode::unmarked);
  if (status == 0) begin_run(by, callers());
  return status;
}

// A call within the run that begins or ends something in a library that stays up.
template <typename Function>
int call_within_run(Call by, Function function) {
  const Nesting nesting;
  const auto index = static_cast<std::uint32_t>(by);
  observe_compute(Observation::end_of_gap);
  const std::uint64_t entered = enter_call(index, CallMode::blocking);
  begin_call(CallMode::blocking);
  const int status = function();
  end_call(CallMode::blocking);
  leave_call(index, CallMode::blocking, entered, 0);
  begin_gap();
  return status;
}

bool within_run() { return !Nesting::inside() && phase() == Phase::running; }

// MPI_Init, where a session may have begun the run before.
template <typename Initialise, typename Granted>
int open_world(Call by, Initialise initialise, Granted callers) {
  const int status = within_run() ? call_within_run(by, initialise) : initialise_rank(by, initialise, callers);
  if (status == 0) world.store(World::open, std::memory_order_relaxed);
  return status;
}

struct Status {
  long words[16];  // larger than any MPI_Status
};

// Waits until every rank has come to its end, and lets the library serve them meanwhile: it is asked for a request that
// nothing but we completes. That needs no communicator, and unlike a probe no command, which would look as if something
// came of it where the others are in a deadlock.
void pass_end_gate() {
  long request = 0;
  int flag = 0;
  Status status;
  constexpr auto nothing = [](void*, void*) { return 0; };
  constexpr auto release = [](void*) { return 0; };
  constexpr auto cancel = [](void*, int) { return 0; };
  pmpi("Grequest_start", +nothing, +release, +cancel, static_cast<void*>(nullptr), &request);
  while (dryfly_self.gate(GateKind::end) == 0) pmpi("Test", &request, &flag, &status);
  pmpi("Grequest_complete", request);
  pmpi("Wait", &request, &status);
}

// Closes the accounts. Virtual time is over after this.
void end_run(Call by, CallMode mode) {
  const auto index = static_cast<std::uint32_t>(by);
  const std::uint64_t entered = enter_call(index, mode);
  close_compute();  // before the conductor counts what the ranks report
  // As any other call does: else what others of the node have written before would be looked for or not as this
  // computer runs them.
  begin_call(mode);
  dryfly_self.has_acted.store(0, std::memory_order_relaxed);
  pass_end_gate();
  leave_last_call(index, mode, entered);
  close_call_record();
  close_software();
  set_phase(Phase::ended);
}

void close_kept_session() {
  if (keeps_session.exchange(false, std::memory_order_relaxed)) pmpi("Session_finalize", &kept_session);
}

void tell_of_end() {
  tell_launcher("finalised");
  tell_pmi_server(PmiWord::left);
}

// Leaves virtual time, and then the library.
template <typename Finalise>
int finalise_rank(Call by, Finalise finalise) {
  const Nesting nesting;
  if (phase() == Phase::running) {
    observe_compute(Observation::end_of_gap);
    end_run(by, CallMode::testing);
    set_mode(CallMode::outside);
  }
  const int status = finalise();
  close_kept_session();
  tell_of_end();
  return status;
}

// At the exit of a process that has had sessions only.
void end_with_process() {
  if (phase() != Phase::running || Nesting::inside() || world.load(std::memory_order_relaxed) != World::untouched)
    return;
  if (sessions.load(std::memory_order_relaxed) != 0) {
    exiting.store(true, std::memory_order_relaxed);  // closed by what runs later, or never
    return;
  }
  const Nesting nesting;
  end_run(Call::Session_finalize, CallMode::testing);
  --dryfly_self.page->profile[static_cast<std::uint32_t>(Call::Session_finalize)]
        .count;  // the program has not called it
  set_mode(CallMode::outside);
  close_kept_session();
  tell_of_end();
}

// Called while the library comes up with the program's first session.
void keep_session(long info, long error_handler) {
  if (phase() != Phase::before || pmpi("Session_init", info, error_handler, &kept_session) != 0) return;
  keeps_session.store(true, std::memory_order_relaxed);
  atexit(end_with_process);  // before what the library and the C library have registered
}

// MPI_`name`: a tool that stands between is called in place of `own`, and is to call PMPI_`name`. `seen` says whether
// it has; where it has called the library past the preload, virtual time would be wrong in silence.
template <typename... Words>
int through_tool(Tool& between, const char* name, int (*own)(Words...), bool (*seen)(), Words... words) {
  void* tool = between.function(name);
  if (tool == nullptr) return own(words...);
  tell_pmi_server(PmiWord::watched);
  const int status = reinterpret_cast<int (*)(Words...)>(tool)(words...);
  if (status == 0 && dryfly_self.attached.load(std::memory_order_acquire) != 0 && !seen()) end_for_bypass(name, tool);
  return status;
}

// What PMPI_ functions do, and MPI_ functions where no tool is between. Apart from these symbols, which a copy of the
// preload may be without (dryfly.mpi.preload).

int own_init(int* argument_count, char*** arguments) {
  return open_world(
      Call::Init, [&] { return pmpi("Init", argument_count, arguments); }, [] { return Callers::main_thread; });
}

int own_init_thread(int* argument_count, char*** arguments, int required, int* provided) {
  return open_world(
      Call::Init_thread, [&] { return pmpi("Init_thread", argument_count, arguments, required, provided); },
      [&] { return callers_by(*provided); });
}

int own_session_init(long info, long error_handler, long* session) {
  int status = 0;
  if (within_run()) {
    status = call_within_run(Call::Session_init, [&] { return pmpi("Session_init", info, error_handler, session); });
  } else {
    status = initialise_rank(
        Call::Session_init,
        [&] {
          const int opened = pmpi("Session_init", info, error_handler, session);
          if (opened == 0) keep_session(info, error_handler);
          return opened;
        },
        [] { return Callers::several; });
  }
  if (status == 0) sessions.fetch_add(1, std::memory_order_relaxed);
  return status;
}

int own_session_finalize(long* session) {
  const bool last = sessions.fetch_sub(1, std::memory_order_relaxed) == 1;
  if (!within_run()) return pmpi("Session_finalize", session);
  if (last && world.load(std::memory_order_relaxed) == World::closed) {
    return finalise_rank(Call::Session_finalize, [&] { return pmpi("Session_finalize", session); });
  }
  const int status = call_within_run(Call::Session_finalize, [&] { return pmpi("Session_finalize", session); });
  if (last && exiting.load(std::memory_order_relaxed)) end_with_process();
  return status;
}

int own_finalize() {
  world.store(World::closed, std::memory_order_relaxed);
  if (within_run() && sessions.load(std::memory_order_relaxed) != 0) {
    return call_within_run(Call::Finalize, [] { return pmpi("Finalize"); });
  }
  return finalise_rank(Call::Finalize, [] { return pmpi("Finalize"); });
}

int own_abort(long communicator, int code) {
  const Nesting nesting;
  if (nesting.outermost() && phase() == Phase::running) {
    observe_compute(Observation::end_of_gap);
    come_to_fail();
    enter_call(static_cast<std::uint32_t>(Call::Abort), CallMode::outside);
    close_compute();
  }
  if (nesting.outermost()) tell_launcher("aborted", code);
  return pmpi("Abort", communicator, code);
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int PMPI_Init(int* argument_count, char*** arguments) { return own_init(argument_count, arguments); }
DRYFLY_EXPORT int PMPI_Init_thread(int* argument_count, char*** arguments, int required, int* provided) {
  return own_init_thread(argument_count, arguments, required, provided);
}
DRYFLY_EXPORT int PMPI_Session_init(long info, long error_handler, long* session) {
  return own_session_init(info, error_handler, session);
}
DRYFLY_EXPORT int PMPI_Session_finalize(long* session) { return own_session_finalize(session); }
DRYFLY_EXPORT int PMPI_Finalize() { return own_finalize(); }
DRYFLY_EXPORT int PMPI_Abort(long communicator, int code) { return own_abort(communicator, code); }

DRYFLY_EXPORT int MPI_Init(int* argument_count, char*** arguments) {
  static constinit Tool between;
  return through_tool(
      between, "Init", own_init, [] { return world.load() != World::untouched; }, argument_count, arguments);
}

DRYFLY_EXPORT int MPI_Init_thread(int* argument_count, char*** arguments, int required, int* provided) {
  static constinit Tool between;
  return through_tool(
      between, "Init_thread", own_init_thread, [] { return world.load() != World::untouched; }, argument_count,
      arguments, required, provided);
}

DRYFLY_EXPORT int MPI_Session_init(long info, long error_handler, long* session) {
  static constinit Tool between;
  return through_tool(
      between, "Session_init", own_session_init, [] { return phase() != Phase::before; }, info, error_handler, session);
}

DRYFLY_EXPORT int MPI_Session_finalize(long* session) {
  static constinit Tool between;
  return through_tool(between, "Session_finalize", own_session_finalize, [] { return true; }, session);
}

DRYFLY_EXPORT int MPI_Finalize() {
  static constinit Tool between;
  return through_tool(between, "Finalize", own_finalize, [] { return world.load() == World::closed; });
}

DRYFLY_EXPORT int MPI_Abort(long communicator, int code) {
  static constinit Tool between;
  return through_tool(between, "Abort", own_abort, [] { return true; }, communicator, code);
}
