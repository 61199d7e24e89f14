#include "preload/node/processor_files.hpp"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preload/node/binding.hpp"
#include "preload/node/shape.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

constexpr std::size_t path_max = 4096;
// A set as text, or as a mask: of each 32 bits 9 characters.
constexpr std::size_t text_max = binding_text_max;

bool write_file(const char* folder, const char* name, const char* text) {
  char path[path_max];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= static_cast<int>(sizeof path)) return false;
  FILE* const file = real::fopen()(path, "w");
  if (file == nullptr) return false;
  fprintf(file, "%s\n", text);
  return fclose(file) == 0;
}

bool write_number(const char* folder, const char* name, std::uint32_t number) {
  char text[16];
  snprintf(text, sizeof text, "%u", number);
  return write_file(folder, name, text);
}

// As Linux has sets: a mask, and under the name's _list as ranges.
bool write_both(const char* folder, const char* name, const Processors& set) {
  char text[text_max];
  char* at = text;
  for (std::uint32_t word = (node_shape()->processors() + 31) / 32; word-- > 0;) {
    at +=
        sprintf(at, "%08x%s", static_cast<std::uint32_t>(set.words[word / 2] >> (word % 2 * 32)), word == 0 ? "" : ",");
  }
  if (!write_file(folder, name, text)) return false;
  char list[64];
  snprintf(list, sizeof list, "%s_list", name);
  write_set(set, text);
  return write_file(folder, list, text);
}

std::uint32_t socket_of(std::uint32_t processor) { return node_shape()->socket[node_shape()->domain_of(processor)]; }

Processors of_socket(std::uint32_t socket) {
  Processors found;
  for (std::uint32_t each = 0; each < node_shape()->processors(); ++each) {
    if (socket_of(each) == socket) found.add(each);
  }
  return found;
}

bool write_processor(const char* folder, std::uint32_t processor) {
  const NodeShape& node = *node_shape();
  char own[path_max];
  snprintf(own, sizeof own, "%s/cpu%u", folder, processor);
  if (mkdir(own, 0700) != 0) return false;
  strcat(own, "/topology");
  if (mkdir(own, 0700) != 0) return false;
  Processors threads;
  for (std::uint32_t thread = 0; thread < node.threads; ++thread) threads.add(processor + thread * node.cores);
  return write_number(own, "core_id", processor) && write_number(own, "physical_package_id", socket_of(processor)) &&
         write_both(own, "thread_siblings", threads) &&
         write_both(own, "core_siblings", of_socket(socket_of(processor)));
}

bool write_all(const char* folder) {
  const NodeShape& node = *node_shape();
  Processors every;
  for (std::uint32_t each = 0; each < node.processors(); ++each) every.add(each);
  char text[text_max];
  write_set(every, text);
  bool all = write_file(folder, "online", text) && write_file(folder, "possible", text) &&
             write_file(folder, "present", text) && write_file(folder, "offline", "");
  for (std::uint32_t core = 0; core < node.cores; ++core) {
    all = all && write_processor(folder, core);
    // All that is told of a thread is its core's.
    for (std::uint32_t thread = 1; thread < node.threads; ++thread) {
      char own[32];
      char link[path_max];
      snprintf(own, sizeof own, "cpu%u", core);
      snprintf(link, sizeof link, "%s/cpu%u", folder, core + thread * node.cores);
      all = all && symlink(own, link) == 0;
    }
  }
  return all;
}

}  // namespace

bool make_processor_files(const char* folder) {
  char wanted[path_max - 64];
  char unfinished[path_max];
  if (snprintf(wanted, sizeof wanted, "%s/cpu", folder) >= static_cast<int>(sizeof wanted)) return false;
  if (access(wanted, F_OK) == 0) return true;
  const int before = errno;
  // Of several processes one is first, and what the others have made goes with the run's folder.
  snprintf(unfinished, sizeof unfinished, "%s.%d", wanted, getpid());
  const bool made = mkdir(unfinished, 0700) == 0 && write_all(unfinished) && rename(unfinished, wanted) == 0;
  errno = before;
  return made || access(wanted, F_OK) == 0;
}

}  // namespace dryfly::preload
