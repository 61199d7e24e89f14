// What Open MPI has to say to people, such as which call an error occurred in, it hands to PMIx, whose servers print it
// once for all ranks that say the same. The server of a run has nobody behind it, so it is said here: each text by the
// first rank that comes to it. Where the ranks' own launcher serves them (prterun), it does so.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cstdint>

#include "preload/export.hpp"
#include "preload/mpi/failing.hpp"
#include "preload/pmix/hash.hpp"
#include "preload/pmix/modex_calls.hpp"
#include "preload/rank.hpp"
#include "rank/refusal.hpp"

namespace dryfly::preload {

namespace {

using pmix::Info;

struct Given {
  const Info* infos;
  std::size_t count;
};

// Null: it is not among them.
const char* text_of(const char* key, Given data, Given directives) {
  for (const Given& given : {data, directives}) {
    for (std::size_t i = 0; i < given.count; ++i) {
      const Info& info = given.infos[i];
      if (strncmp(info.key, key, sizeof info.key) == 0 && info.value.type == pmix::Type::text) return info.value.text;
    }
  }
  return nullptr;
}

// That a call was wrong, or was told to end the job: the process ends it next.
bool tells_of_the_end(Given data, Given directives) {
  const char* const file = text_of("pmix.log.key", data, directives);
  const char* const title = text_of("pmix.log.val", data, directives);
  constexpr char fatal[] = "mpi_errors_";  // are_fatal, abort
  return file != nullptr && title != nullptr && strcmp(file, "help-mpi-errors.txt") == 0 &&
         strncmp(title, fatal, sizeof fatal - 1) == 0;
}

// A file in the run's folder: while the job is being ended others still come, and a name that a process holds would
// be free again.
bool speaks_first(const char* topic) {
  const char* const folder = getenv("PMIX_SERVER_TMPDIR");
  char path[PATH_MAX];
  if (folder == nullptr || snprintf(path, sizeof path, "%s/%s", folder, topic) >= static_cast<int>(sizeof path)) {
    return rank::speaks_for_run(topic);
  }
  const int made = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0) return errno != EEXIST && rank::speaks_for_run(topic);
  close(made);
  return true;
}

// Texts are the same whatever names of hosts and ranks stand in them: by their file and their title there.
bool is_said_by_another(Given data, Given directives) {
  const char* const file = text_of("pmix.log.key", data, directives);
  const char* const title = text_of("pmix.log.val", data, directives);
  if (file == nullptr || title == nullptr) return false;
  Hash topic;
  topic.add(file, strlen(file));
  topic.add(title, strlen(title));
  char name[32];
  snprintf(name, sizeof name, "log-%016llx", static_cast<unsigned long long>(topic.value));
  return !speaks_first(name);
}

using LogDone = void (*)(pmix::Status, void*);

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;
namespace pmix = dryfly::pmix;

DRYFLY_EXPORT int PMIx_Log_nb(const pmix::Info* data, std::size_t count, const pmix::Info* directives,
                              std::size_t directive_count, LogDone done, void* given) {
  using Log = int (*)(const pmix::Info*, std::size_t, const pmix::Info*, std::size_t, LogDone, void*);
  static const auto real = reinterpret_cast<Log>(next_pmix_function("PMIx_Log_nb"));
  const Given all{data, count};
  const Given how{directives, directive_count};
  const char* const text = text_of("pmix.log.stderr", all, how);
  if (tells_of_the_end(all, how)) come_to_fail();
  if (text == nullptr || done == nullptr || !belongs_to_run() || getenv("DRYFLY_LAUNCH") != nullptr) {
    return real(data, count, directives, directive_count, done, given);
  }
  if (!is_said_by_another(all, how)) fputs(text, stderr);
  done(pmix::success, given);
  return pmix::success;
}
