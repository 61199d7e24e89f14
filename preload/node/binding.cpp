#include "preload/node/binding.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/rank.hpp"
#include "rank/kernel_call.hpp"

namespace dryfly::preload {

namespace {

constexpr char variable[] = "DRYFLY_BINDING";
constexpr const char* policy_names[] = {"usual", "preferred", "bind", "interleave", "local", "many", "weighted"};

constinit Binding own;
bool has_begun = false;
bool has_changed = false;  // since the process began
// Of threads other than the main one.
__attribute__((tls_model("initial-exec"))) thread_local Processors thread_set;

bool read_memory(const char*& at, Binding& to) {
  for (std::uint32_t policy = 0; policy < sizeof policy_names / sizeof *policy_names; ++policy) {
    const std::size_t length = strlen(policy_names[policy]);
    if (strncmp(at, policy_names[policy], length) != 0 || at[length] != ':') continue;
    at += length + 1;
    Processors domains;
    if (*at == '-') {
      ++at;
    } else if (!read_set(at, domains)) {
      return false;
    }
    to.policy = static_cast<MemoryPolicy>(policy);
    to.memories = domains.words[0];
    return true;
  }
  return false;
}

// "cpus=1-8 memory=bind:2-3"
void read_binding(const char* at, Binding& to) {
  constexpr char cpus[] = "cpus=";
  constexpr char memory[] = "memory=";
  while (at != nullptr && *at != 0) {
    while (*at == ' ') ++at;
    if (strncmp(at, cpus, sizeof cpus - 1) == 0) {
      at += sizeof cpus - 1;
      if (!read_set(at, to.processors)) return;
    } else if (strncmp(at, memory, sizeof memory - 1) == 0) {
      at += sizeof memory - 1;
      if (!read_memory(at, to)) return;
    } else {
      return;
    }
  }
}

std::int32_t this_thread() { return static_cast<std::int32_t>(syscall(SYS_gettid)); }
bool is_main(std::int32_t thread) { return thread == getpid(); }

// The process's own environment has its binding here, as changed_binding has it: what its C library starts by itself
// (system, popen, execl) inherits that without a call of this library's. In place, for its strings may be in use.
char line[binding_text_max];

void enter_environment() {
  const char* given = getenv(variable);
  if (given != nullptr && strlen(given) + sizeof variable + 1 > sizeof line) return;
  sprintf(line, "%s=%s", variable, given != nullptr ? given : "");
  for (char** place = environ; given != nullptr && *place != nullptr; ++place) {
    if (strncmp(*place, line, sizeof variable) == 0) *place = line;
  }
  if (given == nullptr) putenv(line);
}

// For the provider, which tells the conductor.
void tell() {
  if (has_changed) changed_binding(line);
  std::uint64_t memories = own.memories;
  if (own.policy == MemoryPolicy::usual) memories = own.placed_memories;
  if (own.policy == MemoryPolicy::local) memories = 0;
  wire::NodePlace& place = dryfly_self.place;
  memcpy(place.processors, own.processors.words, sizeof place.processors);
  place.memories = memories;
  dryfly_self.domain = own.processors.any() ? node_shape()->domain_of(own.processors.first()) + 1 : 0;
  const bool takes_part = dryfly_self.attached.load(std::memory_order_acquire) != 0 && phase() != Phase::ended;
  if (!takes_part) return;  // not yet, a child of a rank, or no longer
  dryfly_self.page->place = place;
  if (dryfly_self.moved != nullptr && on_main_thread()) dryfly_self.moved(dryfly_self);
}

Binding* begun() {
  if (node_shape() == nullptr) return nullptr;
  if (!has_begun) {
    has_begun = true;
    read_binding(getenv(variable), own);
    tell();
  }
  return &own;
}

// Before MPI looks: the provider takes what it finds.
__attribute__((constructor)) void begin() {
  if (begun() != nullptr) enter_environment();
}

}  // namespace

const Binding* binding() { return begun(); }

bool is_bound() { return begun() != nullptr && own.processors.any(); }

std::uint32_t current_processor() {
  const Processors set = processors_of(0);
  static std::uint32_t unbound = usual_processor(*node_shape(), getenv("DRYFLY_NODE"));
  return is_bound() || !set.has(unbound) ? set.first() : unbound;
}

Processors processors_of(std::int32_t thread) {
  const bool mine = thread == 0 || thread == this_thread();
  if (mine && !is_main(this_thread()) && thread_set.any()) return thread_set;
  return is_bound() ? own.processors : node_shape()->allowed;
}

bool bind_to(std::int32_t thread, const Processors& wanted) {
  Binding* const to = begun();
  const Processors usable = wanted & node_shape()->allowed;
  if (!usable.any()) return false;
  if (thread == 0) thread = this_thread();
  if (!is_main(thread)) {
    if (thread == this_thread()) thread_set = usable;
    return true;
  }
  // All that a job may use is no binding.
  const bool all = memcmp(usable.words, node_shape()->allowed.words, sizeof usable.words) == 0;
  to->processors = all ? Processors{} : usable;
  has_changed = true;
  tell();
  return true;
}

void set_policy(MemoryPolicy policy, std::uint64_t memories) {
  Binding* const to = begun();
  to->policy = policy;
  to->memories = memories & node_shape()->all_domains();
  has_changed = true;
  tell();
}

void place_range(std::uint64_t bytes, std::uint64_t memories) {
  Binding* const to = begun();
  if (bytes < to->placed_bytes) return;
  to->placed_bytes = bytes;
  to->placed_memories = memories & node_shape()->all_domains();
  tell();
}

bool is_own_thread(std::int32_t thread) {
  if (thread == 0) return true;
  const long arguments[6] = {getpid(), thread, 0, 0, 0, 0};
  return rank::kernel_call(SYS_tgkill, arguments) == 0;
}

const char* changed_binding(char (&room)[binding_text_max]) {
  room[0] = 0;
  const bool is_usual = !own.processors.any() && own.policy == MemoryPolicy::usual;
  if (is_usual && !has_changed) return room;
  char* at = room + sprintf(room, "%s=", variable);
  if (own.processors.any()) at = write_set(own.processors, at + sprintf(at, "cpus="));
  if (own.policy == MemoryPolicy::usual) return room;
  at += sprintf(at, "%smemory=%s:", own.processors.any() ? " " : "", policy_names[static_cast<int>(own.policy)]);
  Processors domains;
  domains.words[0] = own.memories;
  if (domains.any()) {
    write_set(domains, at);
  } else {
    strcpy(at, "-");
  }
  return room;
}

}  // namespace dryfly::preload
