#include "preload/clock/software.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "preload/clock/compute_file.hpp"
#include "preload/mpi/call_names.hpp"
#include "preload/mpi/mpi_calls.hpp"
#include "preload/mpi/schedules.hpp"
#include "preload/rank.hpp"
#include "rank/software.hpp"

namespace dryfly::preload {

namespace {

using rank::Boundary;
using rank::CounterCall;
using rank::SoftwareRow;
using rank::SoftwareTable;

constinit const SoftwareRow* row_of_call[call_name_count] = {};
constinit const SoftwareRow* rows_of_schedules[2][call_name_count] = {};  // null: it has none of its own
constinit rank::SoftwareAccount account_of_call[call_name_count] = {};
constinit rank::SoftwareAccount accounts_of_schedules[2][call_name_count] = {};
std::atomic<wire::Schedule> next_schedule{wire::Schedule::none};
std::atomic<std::uint64_t> next_added_bytes{0};
constinit const rank::ReductionCost* reductions = nullptr;
constinit std::uint64_t reduction_count = 0;

void call_counter(CounterCall what) {
#if defined(__x86_64__)
  asm volatile("int3" : : "a"(rank::counter_magic), "D"(what), "S"(&dryfly_self.software.executed) : "memory");
#else
  (void)what;
#endif
}

// One interval of the record.
struct Interval {
  std::uint16_t call;
  std::uint8_t from;
  std::uint8_t to;
  std::uint32_t executed;
  std::uint64_t bytes;
  std::uint32_t blocks;  // that were put together before it ended, or taken apart after it began
  std::uint32_t block;   // their mean length
};

struct Record {
  int file = -1;
  int reductions = -1;       // a file of lines: type, operation, bytes, instructions
  char reduction[512] = {};  // of the MPI_Reduce_local that comes next
  std::uint32_t call = 0;
  std::uint64_t seen = 0;  // of the instructions counted
  bool paused = false;
  std::size_t count = 0;
  Interval intervals[4096] = {};
};
constinit Record record;

[[noreturn]] void refuse(const char* what, const char* path, const char* why) {
  fprintf(stderr, "dryfly: %s %s: %s\n", what, path, why);
  _exit(70);
}

void flush() {
  const char* at = reinterpret_cast<const char*>(record.intervals);
  std::size_t left = record.count * sizeof(Interval);
  while (left > 0) {
    const ssize_t written = write(record.file, at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) refuse("the record of counted instructions", rank_name(), strerror(errno));
    at += written;
    left -= static_cast<std::size_t>(written);
  }
  record.count = 0;
}

void resume() {
  if (record.file < 0 || !record.paused) return;
  record.paused = false;
  call_counter(CounterCall::resume);
}

struct BlocksOf {
  std::uint32_t blocks;
  std::uint32_t block;
};

BlocksOf blocks_of(Boundary to, std::uint64_t bytes) {
  const rank::Software& software = dryfly_self.software;
  std::uint32_t block = software.found_block.load(std::memory_order_relaxed);
  if (rank::is_send(to)) block = software.block.load(std::memory_order_relaxed);
  return {block != 0 ? static_cast<std::uint32_t>((bytes + block - 1) / block) : 0, block};
}

// A wait is looked at twice; how it polls from then on costs nothing, so it need not be counted. Where a message may
// lie in the node's memory, any pass may find one.
void note(Boundary from, Boundary to, std::uint64_t bytes) {
  const bool polls = rank::is_look(from) && rank::is_look(to) && dryfly_self.mode() != rank::CallMode::testing;
  if (record.paused) {
    if (polls) return;
    record.paused = false;
    if (to != Boundary::call) call_counter(CounterCall::resume);
    record.seen = dryfly_self.software.executed.load(std::memory_order_relaxed);
    return;  // what lies before was not counted
  }
  const std::uint64_t executed = dryfly_self.software.executed.load(std::memory_order_relaxed);
  const auto [blocks, block] = blocks_of(to, bytes);
  record.intervals[record.count++] = {static_cast<std::uint16_t>(record.call),
                                      static_cast<std::uint8_t>(from),
                                      static_cast<std::uint8_t>(to),
                                      static_cast<std::uint32_t>(executed - record.seen),
                                      bytes,
                                      blocks,
                                      block};
  if (record.reduction[0] != 0 && record.call == static_cast<std::uint32_t>(Call::Reduce_local)) {
    dprintf(record.reductions, "%s %u\n", record.reduction, static_cast<std::uint32_t>(executed - record.seen));
    record.reduction[0] = 0;
  }
  record.seen = executed;
  if (record.count == sizeof record.intervals / sizeof record.intervals[0]) flush();
  if (polls && dryfly_self.header->nodes_share_memory == 0) {
    record.paused = true;
    call_counter(CounterCall::pause);
  }
}

void open_record(const char* folder) {
  char path[1024];
  snprintf(path, sizeof path, "%s/intervals-%s.bin", folder, rank_name());
  record.file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (record.file < 0) refuse("the record of counted instructions", path, strerror(errno));
  snprintf(path, sizeof path, "%s/reductions-%s.txt", folder, rank_name());
  record.reductions = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (record.reductions < 0) refuse("the record of counted instructions", path, strerror(errno));
  for (const char* name : call_names) dprintf(record.file, "%s\n", name);
  dprintf(record.file, "\n");  // the intervals begin behind an empty line
  static constexpr SoftwareRow free_of_charge{};
  for (const SoftwareRow*& row : row_of_call) row = &free_of_charge;
  for (auto& rows : rows_of_schedules) {
    for (const SoftwareRow*& row : rows) row = &free_of_charge;
  }
  dryfly_self.software.interval.store(note, std::memory_order_relaxed);
  dryfly_self.software.found_something.store(resume, std::memory_order_relaxed);
}

// A call with large counts, MPI_Send_c, is the plain one in all else.
// Null where the table has none of that name.
const SoftwareRow* row_of(const SoftwareTable& table, const char* name) {
  std::size_t length = strlen(name);
  if (length > 2 && strcmp(name + length - 2, "_c") == 0) length -= 2;
  for (std::uint64_t row = 1; row < table.row_count; ++row) {
    const char* call = table.rows[row].call;
    if (strnlen(call, sizeof table.rows[row].call) == length && strncmp(call, name, length) == 0) {
      return table.rows + row;
    }
  }
  return nullptr;
}

void read_table(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0 || fstat(file, &status) != 0) refuse("the software's costs", path, strerror(errno));
  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapped = size < sizeof(SoftwareTable) ? MAP_FAILED : mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) refuse("the software's costs", path, "not to be read");
  const auto& table = *static_cast<const SoftwareTable*>(mapped);
  const std::size_t rows_end = offsetof(SoftwareTable, rows) + table.row_count * sizeof(SoftwareRow);
  if (memcmp(table.format, rank::software_table_format, sizeof table.format) != 0 || table.row_count == 0 ||
      size != rows_end + table.reduction_count * sizeof(rank::ReductionCost)) {
    refuse("the software's costs", path, "not a table of this version");
  }
  reductions = reinterpret_cast<const rank::ReductionCost*>(static_cast<const char*>(mapped) + rows_end);
  reduction_count = table.reduction_count;
  dryfly_self.software.pack = table.pack;
  dryfly_self.software.unpack = table.unpack;
  for (std::uint32_t call = 0; call < call_name_count; ++call) {
    const SoftwareRow* row = row_of(table, call_names[call]);
    row_of_call[call] = row != nullptr ? row : table.rows;
    const Requests requests = requests_of(static_cast<Call>(call));
    if (requests == Requests::none || requests == Requests::starts) continue;  // it waits for no schedule
    for (std::uint32_t schedule : {1, 2}) {
      char name[sizeof(SoftwareRow::call)];
      snprintf(name, sizeof name, "%s%s", call_names[call], wire::schedule_suffixes[schedule]);
      rows_of_schedules[schedule - 1][call] = row_of(table, name);
    }
  }
}

const char* setting(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != 0 ? value : nullptr;
}

const char* record_folder() { return setting("DRYFLY_SOFTWARE_RECORD"); }
const char* table_file() { return setting("DRYFLY_SOFTWARE"); }

}  // namespace

bool software_is_charged_in(std::uint32_t index) { return row_of_call[index] != nullptr; }

void software_is_of(wire::Schedule schedule, std::uint64_t added_bytes) {
  next_schedule.store(schedule, std::memory_order_relaxed);
  next_added_bytes.store(added_bytes, std::memory_order_relaxed);
}

bool software_is_recorded() { return record.file >= 0; }

void record_reduction(const char* type, const char* operation, std::uint64_t bytes) {
  snprintf(record.reduction, sizeof record.reduction, "%s %s %llu", type, operation,
           static_cast<unsigned long long>(bytes));
}

std::uint32_t reduction_scale(const char* type, const char* operation) {
  for (std::uint64_t i = 0; i < reduction_count; ++i) {
    const rank::ReductionCost& cost = reductions[i];
    if (strncmp(cost.type, type, sizeof cost.type) == 0 &&
        strncmp(cost.operation, operation, sizeof cost.operation) == 0) {
      return cost.scale;
    }
  }
  return 0;
}

bool software_is_charged() { return record_folder() != nullptr || table_file() != nullptr; }

void reach_node_memory(std::uint64_t bytes) {
  rank::Software& software = dryfly_self.software;
  if (!software.is_charged()) return;
  const std::uint64_t ps = software.reach(Boundary::memory, bytes, dryfly_self.mode() != rank::CallMode::testing);
  dryfly_self.now_ps.fetch_add(dryfly_self.duration_ps(ps), std::memory_order_relaxed);
  software.leave(Boundary::memory, bytes);
}

void charge_copied(std::uint64_t bytes) {
  rank::Software& software = dryfly_self.software;
  if (software.row.load(std::memory_order_relaxed) == nullptr) return;
  const std::uint64_t ps = bytes * dryfly_self.header->copies.ps_per_kib / 1024;
  rank::raise(software.charged_ps, ps);
  dryfly_self.now_ps.fetch_add(dryfly_self.duration_ps(ps), std::memory_order_relaxed);
  if (rank::SoftwareAccount* account = software.account.load(std::memory_order_relaxed); account != nullptr) {
    account->add(rank::copied, rank::copied, bytes, ps);
  }
}

void open_software() {
  if (const char* folder = record_folder(); folder != nullptr) {
    open_record(folder);
  } else if (const char* table = table_file(); table != nullptr) {
    read_table(table);
  }
  // What ends the run takes no time.
  for (const Call call : {Call::Finalize, Call::Session_finalize})
    row_of_call[static_cast<std::uint32_t>(call)] = nullptr;
}

void begin_software(std::uint32_t index) {
  rank::Software& software = dryfly_self.software;
  if (row_of_call[index] == nullptr) return;
  auto schedule = static_cast<std::uint32_t>(next_schedule.exchange(wire::Schedule::none, std::memory_order_relaxed));
  if (schedule != 0 && rows_of_schedules[schedule - 1][index] == nullptr) schedule = 0;
  const std::uint32_t call = index | schedule << wire::schedule_shift;
  software.leave(Boundary::call, next_added_bytes.exchange(0, std::memory_order_relaxed));
  software.row.store(schedule != 0 ? rows_of_schedules[schedule - 1][index] : row_of_call[index],
                     std::memory_order_relaxed);
  if (record.file < 0) {
    rank::SoftwareAccount& account =
        schedule != 0 ? accounts_of_schedules[schedule - 1][index] : account_of_call[index];
    account.call = static_cast<std::uint16_t>(call);
    account.page = dryfly_self.page;
    software.account.store(&account, std::memory_order_relaxed);
    return;
  }
  record.call = call;
  record.seen = software.executed.load(std::memory_order_relaxed);
}

void begin_counting() {
  if (record.file >= 0 && dryfly_self.software.is_charged()) call_counter(CounterCall::begin);
}

void end_counting() {
  if (record.file >= 0 && dryfly_self.software.is_charged()) call_counter(CounterCall::end);
}

void end_software() {
  rank::Software& software = dryfly_self.software;
  if (software.row.load(std::memory_order_relaxed) == nullptr) return;
  const bool waits = dryfly_self.mode() != rank::CallMode::testing;
  const std::uint64_t ps = software.reach(Boundary::call, 0, waits);
  software.row.store(nullptr, std::memory_order_relaxed);
  if (ps != 0) advance(ps);
  dryfly_self.page->times.software_ps = software.charged_ps.load(std::memory_order_relaxed);
  dryfly_self.page->times.software_assumed_ps = software.assumed_ps.load(std::memory_order_relaxed);
}

void close_software() {
  if (record.file < 0) return;
  flush();
  close(record.file);
  close(record.reductions);
  record.file = -1;
}

}  // namespace dryfly::preload
