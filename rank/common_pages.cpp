#include "rank/common_pages.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dryfly::rank {

namespace {

constexpr std::uint64_t page_bytes = 4096;
// More than these, and the memory is not what its owner takes it for. Expected of a table of addresses are two runs and
// one page of its own.
constexpr std::uint32_t runs_max = 8;
constexpr std::uint32_t own_pages_max = 16;

// Which pages of this process there are: of the others the kernel has made none, and they read as zeros.
class Presence {
 public:
  explicit Presence(const char* pages) : pages_(pages), map_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  ~Presence() {
    if (map_ >= 0) close(map_);
  }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  // In the order of their numbers. False: it cannot be told.
  bool look(std::uint64_t page, bool& there) {
    constexpr std::uint64_t is_present = 3ULL << 62;  // in memory, or swapped out
    if (map_ < 0) return false;
    if (page % entries == 0 || !read_) {
      const std::uint64_t from = page / entries * entries;
      const auto at = (reinterpret_cast<std::uintptr_t>(pages_) / page_bytes + from) * sizeof(std::uint64_t);
      read_ = pread(map_, words_, sizeof words_, static_cast<off_t>(at)) == static_cast<ssize_t>(sizeof words_);
      if (!read_) return false;
    }
    there = (words_[page % entries] & is_present) != 0;
    return true;
  }

 private:
  static constexpr std::uint64_t entries = 512;
  const char* pages_;
  int map_;
  bool read_ = false;
  std::uint64_t words_[entries];
};

std::uint64_t threads_of_this_process() {
  struct stat tasks{};
  return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 ? tasks.st_nlink - 2 : 0;
}

// A copy in the segment: a byte for each page, whether it is there, and behind these the pages.
struct Copy {
  std::uint8_t* is_there;
  char* pages;
  std::uint64_t pages_offset;  // in the segment
};

Copy copy_in(char* base, const wire::CommonCopies& room, std::uint32_t number, std::uint64_t pages) {
  const std::uint64_t ahead = (pages + page_bytes - 1) / page_bytes * page_bytes;
  const std::uint64_t start = room.offset + number * (room.bytes / wire::common_copies);
  return {reinterpret_cast<std::uint8_t*>(base + start), base + start + ahead, start + ahead};
}

// Consecutive pages that are taken from one copy.
struct Run {
  std::uint64_t first, end;
  std::uint32_t copy;
};

struct Plan {
  Run runs[runs_max];
  std::uint32_t run_count = 0;
  std::uint64_t own_pages[own_pages_max];  // those that no copy has
  std::uint32_t own_count = 0;

  // False: no room.
  bool add(std::uint64_t page, const bool (&fits_copy)[wire::common_copies]) {
    if (run_count == 0) runs[run_count++] = {0, 0, fits_copy[0] ? 0U : 1U};
    Run* last = &runs[run_count - 1];
    if (!fits_copy[0] && !fits_copy[1]) {
      if (own_count == own_pages_max) return false;
      own_pages[own_count++] = page;
    } else if (!fits_copy[last->copy]) {
      if (run_count == runs_max) return false;
      runs[run_count++] = {page, page, 1 - last->copy};
      last = &runs[run_count - 1];
    }
    last->end = page + 1;
    return true;
  }
};

bool is_zero(const char* page) { return page[0] == 0 && memcmp(page, page + 1, page_bytes - 1) == 0; }

bool make_plan(const Copy (&copies)[wire::common_copies], const char* own, std::uint64_t pages, Plan& plan) {
  Presence presence(own);
  for (std::uint64_t page = 0; page < pages; ++page) {
    bool there = false;
    if (!presence.look(page, there)) return false;
    const std::uint64_t at = page * page_bytes;
    bool fits_copy[wire::common_copies];
    for (std::uint32_t number = 0; number < wire::common_copies; ++number) {
      const Copy& copy = copies[number];
      const bool there_too = copy.is_there[page] != 0;
      fits_copy[number] = !there      ? !there_too
                          : there_too ? memcmp(copy.pages + at, own + at, page_bytes) == 0
                                      : is_zero(own + at);
    }
    if (!plan.add(page, fits_copy)) return false;
  }
  return true;
}

// The new mapping is complete before it takes the place of the old one, in one call.
void replace(const Run& run, const Plan& plan, const Copy& copy, char* own, int descriptor) {
  const std::uint64_t bytes = (run.end - run.first) * page_bytes;
  const std::uint64_t start = run.first * page_bytes;
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, descriptor,
                      static_cast<off_t>(copy.pages_offset + start));
  if (mapped == MAP_FAILED) return;
  for (std::uint32_t i = 0; i < plan.own_count; ++i) {
    const std::uint64_t page = plan.own_pages[i];
    if (page < run.first || page >= run.end) continue;
    memcpy(static_cast<char*>(mapped) + page * page_bytes - start, own + page * page_bytes, page_bytes);
  }
  if (mremap(mapped, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, own + start) == MAP_FAILED) munmap(mapped, bytes);
}

// Another allocator may give pages back to the kernel in a way (MADV_DONTNEED) that brings a file's content back where
// it expects zeros.
bool allocator_is_libcs() {
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc == nullptr) return false;
  const bool same = dlsym(RTLD_DEFAULT, "malloc") == dlsym(libc, "malloc");
  dlclose(libc);
  return same;
}

}  // namespace

bool CommonPages::may_be_shared(const wire::SegmentHeader& header, const wire::CommonCopies& room) const {
  return count > 0 && header.rank_count >= least_ranks &&
         (count / page_bytes + 2) * page_bytes + count * page_bytes <= room.bytes / wire::common_copies &&
         threads_of_this_process() == 1 && allocator_is_libcs();
}

void CommonPages::leave_copy(std::uint32_t rank, char* base, const wire::SegmentHeader& header,
                             wire::CommonCopies& room) const {
  if ((rank != 0 && rank != header.rank_count - 1) || !may_be_shared(header, room)) return;
  const std::uint32_t number = rank == 0 ? 0 : 1;
  const Copy copy = copy_in(base, room, number, count);
  Presence presence(first);
  for (std::uint64_t page = 0; page < count; ++page) {
    bool there = false;
    if (!presence.look(page, there)) return;
    if (!there) continue;
    copy.is_there[page] = 1;
    memcpy(copy.pages + page * page_bytes, first + page * page_bytes, page_bytes);
  }
  room.pages[number].store(count, std::memory_order_release);
}

void CommonPages::share(char* base, const wire::SegmentHeader& header, const wire::CommonCopies& room,
                        int descriptor) const {
  if (!may_be_shared(header, room)) return;
  for (const auto& copied : room.pages) {
    if (copied.load(std::memory_order_acquire) != count) return;
  }
  const Copy copies[wire::common_copies] = {copy_in(base, room, 0, count), copy_in(base, room, 1, count)};
  Plan plan;
  if (!make_plan(copies, first, count, plan)) return;
  for (std::uint32_t i = 0; i < plan.run_count; ++i) {
    replace(plan.runs[i], plan, copies[plan.runs[i].copy], first, descriptor);
  }
}

}  // namespace dryfly::rank
