#include "preload/mpi/communicator_class.hpp"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "preload/mpi/mpi_library.hpp"
#include "preload/mpi/spin_lock.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

constexpr char key[] = "dryfly_traffic_class";

struct ClassName {
  const char* hint;     // Cray MPICH's, as in MPICH_OFI_DEFAULT_TCLASS
  const char* profile;  // as DRYFLY_TRAFFIC_CLASSES names it
  std::uint8_t traffic_class;
};
constexpr ClassName names[] = {
    {"TC_BEST_EFFORT", "best_effort", 3},    {"TC_LOW_LATENCY", "low_latency", 1}, {"TC_BULK_DATA", "bulk_data", 2},
    {"TC_DEDICATED_ACCESS", "dedicated", 0}, {"TC_SCAVENGER", "scavenger", 4},
};

// A message belongs to the communicator if its tag has these bits.
struct Marked {
  long communicator;
  std::uint64_t bits;
  std::uint64_t mask;
  const ClassName* name;
};

SpinLock guard;
Marked* marked = nullptr;
std::uint32_t marked_count = 0;
std::uint32_t marked_room = 0;

std::uint8_t class_of_tag(std::uint64_t tag, std::uint8_t usual) {
  const SpinLock::Hold hold(guard);
  for (std::uint32_t i = 0; i < marked_count; ++i) {
    if ((tag & marked[i].mask) == marked[i].bits) return marked[i].name->traffic_class;
  }
  return usual;
}

void forget(long communicator) {
  const SpinLock::Hold hold(guard);
  for (std::uint32_t i = 0; i < marked_count; ++i) {
    if (marked[i].communicator == communicator) marked[i--] = marked[--marked_count];
  }
}

bool remember(const Marked& one) {
  forget(one.communicator);
  const SpinLock::Hold hold(guard);
  if (marked_count == marked_room) {
    const std::uint32_t room = marked_room + 64;
    auto* more = static_cast<Marked*>(realloc(marked, room * sizeof(Marked)));
    if (more == nullptr) return false;
    marked = more;
    marked_room = room;
  }
  marked[marked_count++] = one;
  dryfly_self.class_of_tag.store(class_of_tag, std::memory_order_release);
  return true;
}

const ClassName* class_of(long communicator) {
  const SpinLock::Hold hold(guard);
  for (std::uint32_t i = 0; i < marked_count; ++i) {
    if (marked[i].communicator == communicator) return marked[i].name;
  }
  return nullptr;
}

template <typename... Words>
int pmpi(const char* name, Words... words) {
  return reinterpret_cast<int (*)(Words...)>(find_pmpi(name))(words...);
}

bool first_of(long communicator) {
  int rank = 1;
  pmpi("Comm_rank", communicator, &rank);
  return rank == 0;
}

// MPICH_OFI_TCLASS_ERRORS, as for the class of a job: silence, a warning, or the end of the job.
__attribute__((format(printf, 2, 3))) void complain(long communicator, const char* sentence, ...) {
  const char* wanted = getenv("MPICH_OFI_TCLASS_ERRORS");
  const bool fatal = wanted != nullptr && strcmp(wanted, "error") == 0;
  const bool silent = wanted != nullptr && strcmp(wanted, "silent") == 0;
  if (fatal || (!silent && first_of(communicator))) {
    char text[512];
    va_list arguments;
    va_start(arguments, sentence);
    vsnprintf(text, sizeof text, sentence, arguments);
    va_end(arguments);
    fprintf(stderr, "dryfly: %s: %s\n", fatal ? "error" : "warning", text);
  }
  if (fatal) pmpi("Abort", communicator, 2);
}

const ClassName* find_name(const char* hint) {
  for (const ClassName& each : names) {
    if (strcmp(each.hint, hint) == 0) return &each;
  }
  return nullptr;
}

// Is `word` in a list with commas?
bool is_listed(const char* list, const char* word) {
  const std::size_t length = strlen(word);
  for (const char* at = strstr(list, word); at != nullptr; at = strstr(at + 1, word)) {
    if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return true;
  }
  return false;
}

struct Peek {
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;  // 0: there was none
};
__attribute__((tls_model("initial-exec"))) thread_local constinit Peek* awaited_peek = nullptr;

void peeked(std::uint64_t tag, std::uint64_t ignore) {
  if (awaited_peek != nullptr) *awaited_peek = {tag, ignore};
}

// The bits of the tag that name the communicator are among those that a probe with both wildcards compares. MPICH
// carries 16 bits or more behind those of the message's tag; the lowest four tell apart what belongs to one
// communicator (collectives, parts on a node). Open MPI carries its number above the tag's sign, by which it tells its
// own messages, and two bits of its protocol.
bool find_bits(long communicator, Marked& found) {
  Peek peek;
  awaited_peek = &peek;
  dryfly_self.peeked.store(peeked, std::memory_order_release);
  const Constants& mpi = constants();
  int flag = 0;
  long status[16];  // larger than any MPI_Status
  pmpi("Iprobe", mpi.any_source, mpi.any_tag, communicator, &flag, status);
  awaited_peek = nullptr;
  if (peek.ignore == 0) return false;
  const std::uint64_t compared = ~peek.ignore;
  const std::uint64_t lowest = compared & (~compared + 1);
  found.mask = abi() == Abi::open_mpi ? compared & ~(lowest * 7) : lowest * 0xfff0;
  found.bits = peek.tag & found.mask;
  return found.mask != 0;
}

void set_class(long communicator, const ClassName& name) {
  if (is_intercommunicator(communicator)) {
    return complain(communicator, "%s=%s: an intercommunicator has no class of its own", key, name.hint);
  }
  const char* profile = getenv("DRYFLY_TRAFFIC_CLASSES");
  if (profile != nullptr && !is_listed(profile, name.profile)) {
    complain(communicator, "%s=%s: the machine's QoS profile has %s only; it travels in the profile's default class",
             key, name.hint, profile);
  }
  Marked one{communicator, 0, 0, &name};
  if (!find_bits(communicator, one) || !remember(one)) {
    complain(communicator, "%s=%s has no effect: the MPI library does not send this communicator's messages by tag",
             key, name.hint);
  }
}

void take_hint(long communicator, long info) {
  if (communicator == constants().comm_null || handle(info) == constants().info_null) return;
  char value[64];
  int there = 0;
  const int room = sizeof value - 1;
  if (pmpi("Info_get", info, key, room, value, &there) != 0 || there == 0) return;
  if (const ClassName* name = find_name(value); name != nullptr) return set_class(communicator, *name);
  complain(communicator,
           "%s=%s: accepted is TC_BEST_EFFORT, TC_LOW_LATENCY, TC_BULK_DATA, TC_DEDICATED_ACCESS or TC_SCAVENGER", key,
           value);
}

}  // namespace

long communicator_freed_by(Call call, const long* words) {
  return call == Call::Comm_free || call == Call::Comm_disconnect ? handle_at(words[0]) : 0;
}

void note_communicator(Call call, const long* words, long freed) {
  if (freed != 0) return forget(freed);
  switch (call) {
    case Call::Comm_set_info:
      return take_hint(handle(words[0]), words[1]);
    case Call::Comm_dup_with_info:
      return take_hint(handle_at(words[2]), words[1]);
    case Call::Comm_split_type:
      return take_hint(handle_at(words[4]), words[3]);
    case Call::Comm_get_info:
      if (const ClassName* name = class_of(handle(words[0])); name != nullptr) {
        pmpi("Info_set", handle_at(words[1]), key, name->hint);
      }
      return;
    default:
      return;
  }
}

}  // namespace dryfly::preload
