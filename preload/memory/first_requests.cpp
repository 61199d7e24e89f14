#include "preload/memory/first_requests.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/mpi/mpi_library.hpp"

namespace dryfly::preload {

namespace {

constexpr std::uint32_t mappings_max = 4096;
constexpr std::uint64_t page_bytes = 4096;
constexpr std::uint64_t block_bytes_least = 1024 * 1024;  // what is smaller costs nothing to speak of
constexpr int requests_at_most = 64;

struct Mapping {
  std::uintptr_t start, end;
};

// Of the private memory of this process that can be written and belongs to no file. It must not allocate any itself.
class Mappings {
 public:
  Mappings()
      : list_(static_cast<Mapping*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
  }
  ~Mappings() {
    if (list_ != MAP_FAILED) munmap(list_, bytes);
  }
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;

  // False: they cannot be told.
  bool read() {
    count_ = 0;
    const int file = list_ != MAP_FAILED ? open("/proc/self/maps", O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return false;
    char text[4096];
    std::size_t held = 0;
    ssize_t got = 0;
    bool complete = true;
    while (complete && (got = ::read(file, text + held, sizeof text - 1 - held)) > 0) {
      held += static_cast<std::size_t>(got);
      text[held] = 0;
      char* line = text;
      for (char* end = strchr(line, '\n'); end != nullptr && complete; end = strchr(line, '\n')) {
        *end = 0;
        complete = add(line);
        line = end + 1;
      }
      held -= static_cast<std::size_t>(line - text);
      memmove(text, line, held);
    }
    close(file);
    return complete && got == 0;
  }

  // What of this list is not in `before`: one piece, or nothing.
  Mapping new_since(const Mappings& before) const {
    Mapping found{0, 0};
    for (std::uint32_t i = 0; i < count_; ++i) {
      Mapping left = list_[i];
      for (std::uint32_t j = 0; j < before.count_; ++j) {
        const Mapping& old = before.list_[j];
        if (old.end <= left.start || old.start >= left.end) continue;
        if (old.start > left.start && old.end < left.end) return {0, 0};
        if (old.start <= left.start)
          left.start = old.end < left.end ? old.end : left.end;
        else
          left.end = old.start;
      }
      if (left.start == left.end) continue;
      if (found.start != found.end) return {0, 0};
      found = left;
    }
    return found;
  }

 private:
  static constexpr std::size_t bytes = mappings_max * sizeof(Mapping);

  // A line of the kernel's: "START-END rw-p OFFSET DEVICE INODE   NAME".
  bool add(const char* line) {
    char* rest = nullptr;
    const std::uintptr_t start = strtoul(line, &rest, 16);
    if (*rest != '-') return false;
    const std::uintptr_t end = strtoul(rest + 1, &rest, 16);
    if (strncmp(rest, " rw-p ", 6) != 0 || strchr(rest, '/') != nullptr || strchr(rest, '[') != nullptr) return true;
    if (count_ == mappings_max) return false;
    list_[count_++] = {start, end};
    return true;
  }

  Mapping* list_;
  std::uint32_t count_ = 0;
};

int nothing_to_query(void*, void*) { return 0; }
int nothing_to_free(void*) { return 0; }
int nothing_to_cancel(void*, int) { return 0; }

template <typename... Words>
int pmpi(const char* name, Words... words) {
  return reinterpret_cast<int (*)(Words...)>(find_pmpi(name))(words...);
}

}  // namespace

rank::CommonPages make_first_requests() {
  Mappings before, after;
  if (find_in_library("PMPI_Grequest_start") == nullptr || !before.read()) return {};
  long requests[requests_at_most] = {};  // an int or a pointer, by the ABI
  int made = 0;
  while (made < requests_at_most && pmpi("Grequest_start", nothing_to_query, nothing_to_free, nothing_to_cancel,
                                         static_cast<void*>(nullptr), &requests[made]) == 0) {
    ++made;
  }
  const bool told = after.read();
  while (made > 0) {
    long status[16];  // larger than any MPI_Status
    pmpi("Grequest_complete", requests[--made]);
    pmpi("Wait", &requests[made], status);
  }
  if (!told) return {};
  const Mapping block = after.new_since(before);
  if (block.end - block.start < block_bytes_least) return {};
  return {reinterpret_cast<char*>(block.start), (block.end - block.start) / page_bytes};
}

}  // namespace dryfly::preload
