// Programs that a rank's process turns into. `env LD_PRELOAD=tool program` and scripts that set it leave dryfly's own
// entries out, and the program would run in real time. So what this process has begun with is added behind them. An
// environment without LD_PRELOAD stays as it is. Where this process is bound by now goes along (node/binding.hpp).
// execl and its relatives, fexecve and posix_spawn are left as they are: shells, env and the launchers use none of
// them.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstddef>

#include "preload/export.hpp"
#include "preload/node/binding.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

constexpr char variable[] = "LD_PRELOAD=";
constexpr char own_name[] = "/libdryfly-preload.so";  // in whatever folder: each MPI library has a copy
constexpr std::size_t longest = 16384;

char at_start[longest / 2];  // of this process

__attribute__((constructor)) void note_preloads() {
  const char* const value = belongs_to_run() ? getenv("LD_PRELOAD") : nullptr;
  if (value != nullptr && strlen(value) < sizeof at_start) strcpy(at_start, value);
  real::execve();  // A child of vfork had better not look them up.
  real::execvpe();
}

// On the stack: this may be a child of vfork, which has its parent's memory.
struct Room {
  char preloads[longest];
  char binding[binding_text_max];
};

// The environment's entry that begins so; as many as there are: none.
std::size_t find(char* const* environment, std::size_t count, const char* beginning) {
  std::size_t place = 0;
  while (place < count && strncmp(environment[place], beginning, strlen(beginning)) != 0) ++place;
  return place;
}

// LD_PRELOAD with what this process has begun with behind it; null where nothing is lacking.
char* whole_preloads(const char* entry, char (&room)[longest]) {
  const bool lacks =
      at_start[0] != 0 && strstr(entry, own_name) == nullptr && strlen(entry) + strlen(at_start) + 2 <= longest;
  if (!lacks) return nullptr;
  stpcpy(stpcpy(stpcpy(room, entry), ":"), at_start);
  return room;
}

int execute(real::execvpe_t* function, const char* file, char* const* arguments, char* const* environment) {
  std::size_t count = 0;
  while (environment != nullptr && environment[count] != nullptr) ++count;
  const std::size_t preloads = find(environment, count, variable);
  if (preloads == count) return function(file, arguments, environment);
  Room room;
  char* const whole = whole_preloads(environment[preloads], room.preloads);
  const char* const bound = changed_binding(room.binding);
  if (whole == nullptr && *bound == 0) return function(file, arguments, environment);
  char** const changed = static_cast<char**>(__builtin_alloca((count + 2) * sizeof(char*)));
  memcpy(changed, environment, (count + 1) * sizeof(char*));
  if (whole != nullptr) changed[preloads] = whole;
  if (*bound != 0) {
    const std::size_t place = find(environment, count, "DRYFLY_BINDING=");
    if (place == count) changed[count + 1] = nullptr;
    changed[place] = room.binding;
  }
  return function(file, arguments, changed);
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return execute(real::execve(), path, arguments, environment);
}
DRYFLY_EXPORT int execv(const char* path, char* const* arguments) noexcept {
  return execute(real::execve(), path, arguments, environ);
}
DRYFLY_EXPORT int execvpe(const char* file, char* const* arguments, char* const* environment) noexcept {
  return execute(real::execvpe(), file, arguments, environment);
}
DRYFLY_EXPORT int execvp(const char* file, char* const* arguments) noexcept {
  return execute(real::execvpe(), file, arguments, environ);
}
