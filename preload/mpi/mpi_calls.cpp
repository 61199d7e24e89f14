#include "preload/mpi/mpi_calls.hpp"

#include <atomic>
#include <cstddef>
#include <utility>

#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/clock/progress_rest.hpp"
#include "preload/clock/software.hpp"
#include "preload/export.hpp"
#include "preload/memory/windows.hpp"
#include "preload/mpi/bytes.hpp"
#include "preload/mpi/communicator_class.hpp"
#include "preload/mpi/datatypes.hpp"
#include "preload/mpi/expected_mpi.hpp"
#include "preload/mpi/gpu_buffers.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/mpi/polls.hpp"
#include "preload/mpi/reductions.hpp"
#include "preload/mpi/schedules.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

__attribute__((tls_model("initial-exec"))) thread_local constinit std::uint32_t Nesting::depth_ = 0;

using rank::CallMode;
using wire::GateKind;

// The order of threads is the host's anyway.
void begin_call(CallMode mode) {
  if (mode == CallMode::outside) {
    dryfly_self.gate(GateKind::outside);
  } else if (dryfly_self.header->nodes_share_memory != 0 &&
             dryfly_self.thread_multiple.load(std::memory_order_relaxed) == 0) {
    dryfly_self.gate(GateKind::baton);
  }
}

void end_call(CallMode mode) {
  if (mode == CallMode::outside) {
    dryfly_self.gate(GateKind::inside);
  } else if (dryfly_self.header->nodes_share_memory != 0) {
    dryfly_self.gate(GateKind::baton_back);
  }
}

namespace {

// One row of the table, as far as it is not in the code of the wrapper.
struct Row {
  const char* name;
  Call call;
  CallMode mode;
  Shape bytes;
  int operation;  // its place among the arguments
  Requests requests;
  bool on_the_host;  // where its buffers are on GPUs
  Observation ends_gap;
  std::atomic<void*> pmpi{nullptr};
  Tool tool{};

  constexpr Row(const char* n, Call c, CallMode m, Shape b)
      : name(n),
        call(c),
        mode(m),
        bytes(b),
        operation(operation_of(c)),
        requests(requests_of(c)),
        on_the_host(reduces_on_the_host(c)),
        ends_gap(is_poll(c) ? Observation::at_poll : Observation::end_of_gap) {}
};

void* pmpi(Row& row) {
  void* known = row.pmpi.load(std::memory_order_relaxed);
  if (known == nullptr) {
    known = find_pmpi(row.name);
    row.pmpi.store(known, std::memory_order_relaxed);
  }
  return known;
}

template <std::size_t>
using Word = long;

template <std::size_t... I>
int forward(void* function, [[maybe_unused]] const long* words, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(Word<I>...)>(function)(words[I]...);
}

template <std::size_t... I>
auto as_function(void* function, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(Word<I>...)>(function);
}

// The communicator whose ranks start further ones; null if the call starts none.
const long* parents_of_spawned(Call call, const long* words) {
  if (call == Call::Comm_spawn) return &words[5];
  return call == Call::Comm_spawn_multiple ? &words[6] : nullptr;
}

template <std::size_t count>
int call(Row& row, const long* words) {
  void* function = pmpi(row);
  const Nesting nesting;
  if (!nesting.outermost() || phase() != Phase::running) {
    return forward(function, words, std::make_index_sequence<count>{});
  }
  const auto index = static_cast<std::uint32_t>(row.call);
  observe_compute(row.ends_gap);
  const CallMode mode = mode_with_windows(row.call, row.mode);
  const bool charged = software_is_charged_in(index);
  if (charged) {
    describe_data(row.bytes, row.operation, words);
    forget_datatype(row.call, words);
    const Schedules waits = schedules_waited_for(row.requests, words);
    if (waits.kind == wire::Schedule::reduction) dryfly_self.software.reduction_scale = waits.reduction_scale;
    software_is_of(waits.kind, reduces_locally(row.call) ? bytes_of(row.bytes, words) : 0);
  }
  const std::uint64_t entered = enter_call(index, mode);
  settle_windows(row.call);
  begin_call(row.mode);
  const long freed = communicator_freed_by(row.call, words);
  if (row.call == Call::Comm_split_type) [[unlikely]]
    refuse_old_split_type(words[1]);
  if (row.call == Call::Win_allocate_shared || row.call == Call::Win_allocate_shared_c) [[unlikely]]
    refuse_shared_window();
  if (const long* const parents = parents_of_spawned(row.call, words); parents != nullptr) [[unlikely]]
    refuse_spawn(row.name, *parents);
  settle_gpu_copies();
  if (const char* const why = why_no_gpu_buffers(); why != nullptr) [[unlikely]]
    tell_of_gpu_buffers(row.name, why, words, count);
  HostBuffers buffers;
  const long* const given = row.on_the_host ? buffers.take(row.call, words, count) : words;
  const bool probes = row.call == Call::Probe || row.call == Call::Mprobe;
  if (probes) note_probing(true);
  begin_counting();
  const int status = forward(function, given, std::make_index_sequence<count>{});
  end_counting();
  if (probes) note_probing(false);
  if (given != words) buffers.give_back();
  if (status == 0) note_communicator(row.call, words, freed);
  end_call(row.mode);
  leave_call(index, mode, entered, status == 0 ? bytes_of(row.bytes, words) : 0);
  leave_windows();
  if (charged && status == 0) {
    note_datatype(row.call, words);
    note_schedules(row.requests, words, count, row.operation >= 0);
  }
  begin_gap();
  return status;
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

#define DRYFLY_PARAMETERS_0
#define DRYFLY_PARAMETERS_1 long a
#define DRYFLY_PARAMETERS_2 DRYFLY_PARAMETERS_1, long b
#define DRYFLY_PARAMETERS_3 DRYFLY_PARAMETERS_2, long c
#define DRYFLY_PARAMETERS_4 DRYFLY_PARAMETERS_3, long d
#define DRYFLY_PARAMETERS_5 DRYFLY_PARAMETERS_4, long e
#define DRYFLY_PARAMETERS_6 DRYFLY_PARAMETERS_5, long f
#define DRYFLY_PARAMETERS_7 DRYFLY_PARAMETERS_6, long g
#define DRYFLY_PARAMETERS_8 DRYFLY_PARAMETERS_7, long h
#define DRYFLY_PARAMETERS_9 DRYFLY_PARAMETERS_8, long i
#define DRYFLY_PARAMETERS_10 DRYFLY_PARAMETERS_9, long j
#define DRYFLY_PARAMETERS_11 DRYFLY_PARAMETERS_10, long k
#define DRYFLY_PARAMETERS_12 DRYFLY_PARAMETERS_11, long l
#define DRYFLY_PARAMETERS_13 DRYFLY_PARAMETERS_12, long m
#define DRYFLY_WORDS_0
#define DRYFLY_WORDS_1 a
#define DRYFLY_WORDS_2 DRYFLY_WORDS_1, b
#define DRYFLY_WORDS_3 DRYFLY_WORDS_2, c
#define DRYFLY_WORDS_4 DRYFLY_WORDS_3, d
#define DRYFLY_WORDS_5 DRYFLY_WORDS_4, e
#define DRYFLY_WORDS_6 DRYFLY_WORDS_5, f
#define DRYFLY_WORDS_7 DRYFLY_WORDS_6, g
#define DRYFLY_WORDS_8 DRYFLY_WORDS_7, h
#define DRYFLY_WORDS_9 DRYFLY_WORDS_8, i
#define DRYFLY_WORDS_10 DRYFLY_WORDS_9, j
#define DRYFLY_WORDS_11 DRYFLY_WORDS_10, k
#define DRYFLY_WORDS_12 DRYFLY_WORDS_11, l
#define DRYFLY_WORDS_13 DRYFLY_WORDS_12, m

// A tool is called by a jump, without an array whose address is taken: it looks for its caller on the stack.
#define DRYFLY_WRAPPERS(prefix, row_name, arguments)                                             \
  DRYFLY_EXPORT int prefix##row_name(DRYFLY_PARAMETERS_##arguments) {                            \
    void* tool = row_of_##row_name.tool.function(row_of_##row_name.name);                        \
    if (tool != nullptr) [[unlikely]]                                                            \
      return as_function(tool, std::make_index_sequence<arguments>{})(DRYFLY_WORDS_##arguments); \
    const long words[arguments + 1] = {DRYFLY_WORDS_##arguments};                                \
    return call<arguments>(row_of_##row_name, words);                                            \
  }                                                                                              \
  DRYFLY_EXPORT int P##prefix##row_name(DRYFLY_PARAMETERS_##arguments) {                         \
    const long words[arguments + 1] = {DRYFLY_WORDS_##arguments};                                \
    return call<arguments>(row_of_##row_name, words);                                            \
  }
#define DRYFLY_MPI_CALL(name, arguments, mode, bytes)                           \
  static constinit Row row_of_##name{#name, Call::name, CallMode::mode, bytes}; \
  DRYFLY_WRAPPERS(MPI_, name, arguments)
#define DRYFLY_MPI_EXTENSION(name, arguments, mode)                                            \
  static constinit Row row_of_X_##name{"X_" #name, Call::X_##name, CallMode::mode, nothing()}; \
  DRYFLY_WRAPPERS(MPI, X_##name, arguments)
#define DRYFLY_MPI_LIFE(name, arguments)
#include "preload/mpi/mpi_calls.def"
