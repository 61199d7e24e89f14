// The MPI functions that begin and end a rank. Virtual time begins when MPI_Init has come back in every rank and ends
// when MPI_Finalize has begun in every rank; Init and Finalize themselves talk to the process manager and take none.
//
// Sessions: the first MPI_Session_init that joins the run begins it as MPI_Init does. The last MPI_Session_finalize of
// a program that never called MPI_Init leaves virtual time without waiting for the others, since there is no
// communicator on which progress could be made meanwhile. A session is taken to be MPI_THREAD_MULTIPLE.
#include <atomic>

#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/export.hpp"
#include "preload/launcher_line.hpp"
#include "preload/memory/first_requests.hpp"
#include "preload/memory/node_memory.hpp"
#include "preload/mpi/call_record.hpp"
#include "preload/mpi/expected_mpi.hpp"
#include "preload/mpi/mpi_calls.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/mpi/nic_wish.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

using rank::CallMode;
using wire::GateKind;

std::atomic<std::uint32_t> sessions{0};

template <typename... Words>
int pmpi(const char* name, Words... words) {
  return reinterpret_cast<int (*)(Words...)>(find_pmpi(name))(words...);
}

void set_mode(CallMode mode) {
  dryfly_self.call_mode.store(static_cast<std::uint32_t>(mode), std::memory_order_relaxed);
}

// Begins the run if the library has joined it.
void begin_run(Call by, bool thread_multiple) {
  if (phase() != Phase::before || dryfly_self.attached.load(std::memory_order_acquire) == 0) return;
  dryfly_self.gate(GateKind::start);
  set_phase(Phase::running);
  note_call(static_cast<std::uint32_t>(by));
  open_ledger(thread_multiple);
  open_compute();
  open_call_record();
  begin_gap();
}

// MPI_Init and its like: `initialise` calls the library, `is_thread_multiple` says afterwards what it has granted.
template <typename Initialise, typename IsThreadMultiple>
int initialise_rank(Call by, Initialise initialise, IsThreadMultiple is_thread_multiple) {
  const Nesting nesting;
  if (!nesting.outermost() || phase() == Phase::running) return initialise();
  require_expected_mpi();
  become_rank();
  wish_for_nic();
  watch_node_memory();
  set_mode(CallMode::outside);
  tell_launcher("initialised");
  const int status = initialise();
  const bool joined = status == 0 && dryfly_self.attached.load(std::memory_order_acquire) != 0;
  if (joined && by != Call::Session_init && abi() != Abi::open_mpi) {
    dryfly_self.first_requests = make_first_requests();
  }
  set_mode(CallMode::unmarked);
  if (status == 0) begin_run(by, is_thread_multiple());
  return status;
}

// Waits until every rank has come to its end, and lets the library serve them meanwhile.
void pass_end_gate() {
  const Constants& mpi = constants();
  while (dryfly_self.gate(GateKind::end) == 0) {
    int flag = 0;
    long status[16];  // larger than any MPI_Status
    pmpi("Iprobe", mpi.any_source, mpi.any_tag, mpi.comm_world, &flag, status);
  }
}

// Closes the accounts. Virtual time is over after this.
void end_run(Call by, CallMode mode, void (*wait)()) {
  const auto index = static_cast<std::uint32_t>(by);
  observe_compute(Observation::end_of_gap);
  const std::uint64_t entered = enter_call(index, mode);
  wait();
  leave_call(index, mode, entered, 0);
  close_call_record();
  close_compute();
  set_phase(Phase::ended);
}

// MPI_`name`: a tool that stands between is called in place of `own`, and is to call PMPI_`name`. `seen` says whether
// it has; where it has called the library past the preload, virtual time would be wrong in silence.
template <typename... Words>
int through_tool(Tool& between, const char* name, int (*own)(Words...), bool (*seen)(), Words... words) {
  void* tool = between.function(name);
  if (tool == nullptr) return own(words...);
  const int status = reinterpret_cast<int (*)(Words...)>(tool)(words...);
  if (status == 0 && dryfly_self.attached.load(std::memory_order_acquire) != 0 && !seen()) end_for_bypass(name, tool);
  return status;
}

// What PMPI_ functions do, and MPI_ functions where no tool is between. Apart from these symbols, which a copy of the
// preload may be without (dryfly.mpi.preload).

int own_init(int* argument_count, char*** arguments) {
  return initialise_rank(Call::Init, [&] { return pmpi("Init", argument_count, arguments); }, [] { return false; });
}

int own_init_thread(int* argument_count, char*** arguments, int required, int* provided) {
  return initialise_rank(
      Call::Init_thread, [&] { return pmpi("Init_thread", argument_count, arguments, required, provided); },
      [&] { return *provided == constants().thread_multiple; });
}

int own_session_init(long info, long error_handler, long* session) {
  const int status = initialise_rank(
      Call::Session_init, [&] { return pmpi("Session_init", info, error_handler, session); }, [] { return true; });
  if (status == 0) sessions.fetch_add(1, std::memory_order_relaxed);
  return status;
}

int own_session_finalize(long* session) {
  const Nesting nesting;
  int initialised = 0;
  pmpi("Initialized", &initialised);
  if (sessions.fetch_sub(1, std::memory_order_relaxed) == 1 && initialised == 0 && phase() == Phase::running) {
    end_run(Call::Session_finalize, CallMode::outside, [] { dryfly_self.gate(GateKind::outside); });
    set_mode(CallMode::outside);
  }
  const int status = pmpi("Session_finalize", session);
  if (phase() == Phase::ended) tell_launcher("finalised");
  return status;
}

int own_finalize() {
  const Nesting nesting;
  if (phase() == Phase::running) {
    end_run(Call::Finalize, CallMode::testing, pass_end_gate);
    set_mode(CallMode::outside);
  }
  const int status = pmpi("Finalize");
  tell_launcher("finalised");
  return status;
}

int own_abort(long communicator, int code) {
  const Nesting nesting;
  if (nesting.outermost() && phase() == Phase::running) {
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
  return through_tool(between, "Init", own_init, [] { return phase() != Phase::before; }, argument_count, arguments);
}

DRYFLY_EXPORT int MPI_Init_thread(int* argument_count, char*** arguments, int required, int* provided) {
  static constinit Tool between;
  return through_tool(
      between, "Init_thread", own_init_thread, [] { return phase() != Phase::before; }, argument_count, arguments,
      required, provided);
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
  return through_tool(between, "Finalize", own_finalize, [] { return phase() != Phase::running; });
}

DRYFLY_EXPORT int MPI_Abort(long communicator, int code) {
  static constinit Tool between;
  return through_tool(between, "Abort", own_abort, [] { return true; }, communicator, code);
}
