// Programs that a rank's process turns into. `env LD_PRELOAD=tool program` and scripts that set it leave dryfly's own
// entries out, and the program would run in real time. So what this process has begun with is added behind them. A
// script that loads an environment module puts another MPI's folder in front of LD_LIBRARY_PATH: those of the run's
// library come first again. Where this process is bound by now goes along (node/binding.hpp). An environment without
// these variables stays as it is. execl and its relatives, system and popen pass on the process's own environment,
// where its binding stands too; execle and fexecve with another one are left as they are: shells, env and the launchers
// use neither.
#include <spawn.h>
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

constexpr char preloads[] = "LD_PRELOAD=";
constexpr char libraries[] = "LD_LIBRARY_PATH=";
constexpr char own_name[] = "/libdryfly-preload.so";  // in whatever folder: each MPI library has a copy
constexpr std::size_t longest = 16384;

char at_start[longest / 2];  // of this process

__attribute__((constructor)) void note_preloads() {
  const char* const value = belongs_to_run() ? getenv("LD_PRELOAD") : nullptr;
  if (value != nullptr && strlen(value) < sizeof at_start) strcpy(at_start, value);
  real::execve();  // A child of vfork had better not look them up.
  real::execvpe();
}

bool is(const char* assignment, const char* variable) { return strncmp(assignment, variable, strlen(variable)) == 0; }

// Whether `assignment` lacks what is dryfly's, and then the whole of it with that.
bool complete(const char* assignment, char* whole) {
  const char* const folders = getenv("DRYFLY_LIBRARY_PATH");
  if (is(assignment, preloads)) {
    if (at_start[0] == 0 || strstr(assignment, own_name) != nullptr) return false;
    if (strlen(assignment) + strlen(at_start) + 2 > longest) return false;
    stpcpy(stpcpy(stpcpy(whole, assignment), ":"), at_start);
    return true;
  }
  if (folders == nullptr || !is(assignment, libraries)) return false;
  const char* const value = assignment + sizeof libraries - 1;
  const std::size_t length = strlen(folders);
  const bool has_them = strncmp(value, folders, length) == 0 && (value[length] == 0 || value[length] == ':');
  if (has_them || strlen(assignment) + length + 2 > longest) return false;
  stpcpy(stpcpy(stpcpy(stpcpy(whole, libraries), folders), ":"), value);
  return true;
}

// A place for the binding of this process; nullptr where the environment is not a run's.
char** place_of_binding(char** environment, std::size_t count) {
  constexpr char binding[] = "DRYFLY_BINDING=";
  bool of_run = false;
  for (std::size_t place = 0; place < count; ++place) {
    if (is(environment[place], binding)) return &environment[place];
    of_run |= is(environment[place], preloads);
  }
  if (!of_run) return nullptr;
  environment[count + 1] = nullptr;
  return &environment[count];
}

// Calls `function` with what the environment comes to.
template <typename Function>
int with_completed(char* const* environment, const Function& function) {
  std::size_t count = 0;
  while (environment != nullptr && environment[count] != nullptr) ++count;
  // On the stack: this may be a child of vfork, which has its parent's memory.
  char values[2][longest];
  char bound[binding_text_max];
  char** const changed = static_cast<char**>(__builtin_alloca((count + 2) * sizeof(char*)));
  if (count != 0) memcpy(changed, environment, (count + 1) * sizeof(char*));
  int completed = 0;
  for (std::size_t place = 0; place < count && completed < 2; ++place) {
    if (complete(environment[place], values[completed])) changed[place] = values[completed++];
  }
  char** const binding = *changed_binding(bound) != 0 ? place_of_binding(changed, count) : nullptr;
  if (binding != nullptr) *binding = bound;
  return function(completed != 0 || binding != nullptr ? changed : environment);
}

int execute(real::execvpe_t* function, const char* file, char* const* arguments, char* const* environment) {
  return with_completed(environment, [&](char* const* completed) { return function(file, arguments, completed); });
}

int spawn(real::posix_spawn_t* function, pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
          const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return with_completed(environment, [&](char* const* completed) {
    return function(child, file, actions, attributes, arguments, completed);
  });
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
DRYFLY_EXPORT int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return spawn(real::posix_spawn(), child, path, actions, attributes, arguments, environment);
}
DRYFLY_EXPORT int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  return spawn(real::posix_spawnp(), child, file, actions, attributes, arguments, environment);
}
