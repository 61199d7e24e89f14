#include "provider/memory_watch.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "provider/huge_pages.hpp"
#include "provider/log.hpp"
#include "provider/registration.hpp"
#include "rank/kernel_call.hpp"

// Where the C library keeps the end of the heap, and looks it up.
extern "C" void* __curbrk __attribute__((weak));

namespace dryfly::provider {

std::atomic<std::uint32_t> gone_count{0};

namespace {

// Held by a thread in one of the calls below, or by the one that tells: for some instructions, without a call.
class Spin {
 public:
  Spin() {
    while (held.exchange(true, std::memory_order_acquire)) {
    }
  }
  ~Spin() { held.store(false, std::memory_order_release); }
  static void reset() { held.store(false, std::memory_order_release); }
  Spin(const Spin&) = delete;
  Spin& operator=(const Spin&) = delete;

 private:
  inline static constinit std::atomic<bool> held{false};
};

constexpr std::uint32_t gone_max = 1024;
constinit MemoryRange gone[gone_max];
constinit Registrations* watching = nullptr;  // list

// Where all are taken, the last one is made to reach around the new one too.
void note_gone(std::uint64_t begin, std::uint64_t bytes) {
  const Spin spin;
  if (watching == nullptr || bytes == 0) return;
  const MemoryRange range{begin, begin + bytes};
  const std::uint32_t count = gone_count.load(std::memory_order_relaxed);
  if (count > 0 && gone[count - 1].holds(range)) return;
  if (count == gone_max) {
    MemoryRange& last = gone[count - 1];
    last = {std::min(last.begin, range.begin), std::max(last.end, range.end)};
    return;
  }
  gone[count] = range;
  gone_count.store(count + 1, std::memory_order_relaxed);
}

void note_gone(const void* begin, std::uint64_t bytes) { note_gone(reinterpret_cast<std::uint64_t>(begin), bytes); }

template <typename... Words>
long kernel(long number, Words... words) {
  const long arguments[6] = {static_cast<long>(words)...};
  return rank::kernel_call(number, arguments);
}

long word(const void* pointer) { return reinterpret_cast<long>(pointer); }

// Who stood there before, Open MPI's hooks or libfabric's; or null, and the kernel is called.
struct {
  int (*munmap)(void*, std::size_t);
  void* (*mmap)(void*, std::size_t, int, int, int, off_t);
  void* (*mremap)(void*, std::size_t, std::size_t, int, void*);
  int (*madvise)(void*, std::size_t, int);
  int (*brk)(void*);
} constinit before{};

int watched_munmap(void* begin, std::size_t bytes) {
  note_gone(begin, bytes);
  {
    const Spin spin;
    forget_huge({reinterpret_cast<std::uint64_t>(begin), reinterpret_cast<std::uint64_t>(begin) + bytes});
  }
  if (before.munmap != nullptr) return before.munmap(begin, bytes);
  return static_cast<int>(kernel(SYS_munmap, word(begin), bytes));
}

void* watched_mmap(void* begin, std::size_t bytes, int access, int flags, int file, off_t offset) {
  if ((flags & MAP_FIXED) != 0 && begin != nullptr) note_gone(begin, bytes);
  if ((flags & MAP_HUGETLB) != 0 && (flags & MAP_ANONYMOUS) != 0) {
    HugeRange made{};
    if (!map_huge(begin, bytes, access, flags, made)) return MAP_FAILED;
    const Spin spin;
    note_huge(made);
    return reinterpret_cast<void*>(made.range.begin);
  }
  if (before.mmap != nullptr) return before.mmap(begin, bytes, access, flags, file, offset);
  return reinterpret_cast<void*>(kernel(SYS_mmap, word(begin), bytes, access, flags, file, offset));
}

void* watched_mremap(void* begin, std::size_t bytes, std::size_t new_bytes, int flags, void* to) {
  note_gone(begin, bytes);
  if (before.mremap != nullptr) return before.mremap(begin, bytes, new_bytes, flags, to);
  return reinterpret_cast<void*>(kernel(SYS_mremap, word(begin), bytes, new_bytes, flags, word(to)));
}

int watched_madvise(void* begin, std::size_t bytes, int advice) {
  if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE) note_gone(begin, bytes);
  if (before.madvise != nullptr) return before.madvise(begin, bytes, advice);
  return static_cast<int>(kernel(SYS_madvise, word(begin), bytes, advice));
}

int watched_brk(void* end) {
  const std::uint64_t old_end = reinterpret_cast<std::uint64_t>(__curbrk);
  if (before.brk != nullptr) {
    if (reinterpret_cast<std::uint64_t>(end) < old_end) note_gone(end, old_end - reinterpret_cast<std::uint64_t>(end));
    return before.brk(end);
  }
  const auto new_end = static_cast<std::uint64_t>(kernel(SYS_brk, word(end)));
  __curbrk = reinterpret_cast<void*>(new_end);
  if (new_end < old_end) note_gone(new_end, old_end - new_end);
  if (new_end >= reinterpret_cast<std::uint64_t>(end)) return 0;
  errno = ENOMEM;
  return -1;
}

#if defined(__x86_64__)

// mov r11, ADDRESS; jmp r11
struct __attribute__((packed)) Jump {
  unsigned char load[2] = {0x49, 0xbb};
  void* target = nullptr;
  unsigned char jump[3] = {0x41, 0xff, 0xe3};
};

bool is_jump(const Jump& code) {
  const Jump pattern;
  return memcmp(code.load, pattern.load, sizeof code.load) == 0 &&
         memcmp(code.jump, pattern.jump, sizeof code.jump) == 0;
}

// Has the function begin with a jump to `target`. `earlier`: where it jumped so far, if it did.
template <class Function>
bool redirect(void* function, Function* target, Function*& earlier) {
  if (function == nullptr) return false;
  Jump found;
  memcpy(&found, function, sizeof found);
  Jump jump;
  jump.target = reinterpret_cast<void*>(target);
  const auto page = static_cast<std::uint64_t>(getpagesize());
  const std::uint64_t begin = reinterpret_cast<std::uint64_t>(function) & ~(page - 1);
  const std::uint64_t end = reinterpret_cast<std::uint64_t>(function) + sizeof jump;
  if (kernel(SYS_mprotect, begin, end - begin, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return false;
  if (is_jump(found)) earlier = reinterpret_cast<Function*>(found.target);
  memcpy(function, &jump, sizeof jump);
  kernel(SYS_mprotect, begin, end - begin, PROT_READ | PROT_EXEC);
  return true;
}

bool stand_before_the_library() {
  void* library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr || &__curbrk == nullptr) return false;
  return redirect(dlsym(library, "munmap"), watched_munmap, before.munmap) &&
         redirect(dlsym(library, "mmap"), watched_mmap, before.mmap) &&
         redirect(dlsym(library, "mremap"), watched_mremap, before.mremap) &&
         redirect(dlsym(library, "madvise"), watched_madvise, before.madvise) &&
         redirect(dlsym(library, "brk"), watched_brk, before.brk);
}

#else

bool stand_before_the_library() { return false; }

#endif

}  // namespace

void watch_in_child() { Spin::reset(); }

void watch_memory_for(Registrations& registrations) {
  static bool stands = false;
  if (!stands && !stand_before_the_library()) log("what memory the program gives back cannot be seen here");
  stands = true;
  const Spin spin;
  registrations.next = watching;
  watching = &registrations;
}

void stop_watching_for(const Registrations& registrations) {
  const Spin spin;
  Registrations** link = &watching;
  while (*link != nullptr && *link != &registrations) link = &(*link)->next;
  if (*link != nullptr) *link = registrations.next;
}

void tell_what_has_gone() {
  const Spin spin;
  const std::uint32_t count = gone_count.load(std::memory_order_relaxed);
  for (Registrations* told = watching; told != nullptr; told = told->next) {
    for (std::uint32_t range = 0; range < count; ++range) told->memory_gone(gone[range]);
  }
  gone_count.store(0, std::memory_order_relaxed);
}

}  // namespace dryfly::provider
