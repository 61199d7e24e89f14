#include "rank/payloads.hpp"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rank/start_memory.hpp"

namespace dryfly::rank {

namespace {

using namespace wire;

constexpr std::uint64_t read_max_bytes = 16 * 1024;  // above, the copy costs more than the fault

}  // namespace

bool Payloads::prepare_long(Command& command, const void* payload, bool stable) {
  const std::uint64_t length = command.length;
  if (length <= header_->eager_max || length <= staged_max_ || !stable || header_->cross_memory_allowed == 0) {
    const std::uint64_t offset = arena_.allocate(length);
    if (offset == 0) return false;
    memcpy(base_ + offset, payload, length);
    command.arena_offset = offset;
    command.flags |= command_flag::payload_arena;
  } else {
    command.buffer = reinterpret_cast<std::uint64_t>(payload);
    command.flags |= command_flag::payload_memory;
  }
  return true;
}

int Payloads::place(const Event& event, void* to) {
  char* target = to != nullptr ? static_cast<char*>(to) : reinterpret_cast<char*>(event.buffer);
  const std::uint64_t length = event.place_length;
  if ((event.flags & event_flag::payload_inline) != 0) {
    if (length > 0) memcpy(target, reinterpret_cast<const char*>(&event) + event_bytes, length);
  } else if ((event.flags & event_flag::payload_arena) != 0) {
    if (length > 0) copy_from_arena(event.arena_offset, length, target);
    Arena::free(base_, event.arena_offset);
  } else if ((event.flags & event_flag::payload_memory) != 0) {
    return copy_from_sender(event, target);
  }
  return 0;
}

// To look at a part of the arena for the first time costs a fault, in which the kernel maps 64 KiB; who has one message
// from each of many senders would pay that for each. So the first payload from such a part is read from the segment's
// file, and only who comes back maps it, unless it has been mapped ahead.
void Payloads::copy_from_arena(std::uint64_t offset, std::uint64_t length, char* target) {
  const auto part = static_cast<std::uint32_t>(offset / StartMemory::part_bytes);
  std::uint32_t& visited = visited_parts_[part % parts_known];
  if (offset >= header_->arena.offset + header_->arena.ahead_bytes && visited != part && length <= read_max_bytes) {
    visited = part;
    // The system call itself: pread may be the program's own, or one that keeps a log of its files.
    const int segment = attachment_.segment_descriptor();
    if (segment >= 0 && syscall(SYS_pread64, segment, target, length, offset) == static_cast<long>(length)) return;
  }
  memcpy(target, base_ + offset, length);
}

int Payloads::copy_from_sender(const Event& event, char* target) {
  int error = 0;
  const std::uint64_t length = event.place_length;
  if (event.source_pid == static_cast<std::uint32_t>(getpid())) {
    memmove(target, reinterpret_cast<const void*>(event.source_buffer), length);
  } else {
    std::uint64_t done = 0;
    while (done < length && error == 0) {
      iovec here{target + done, length - done};
      iovec there{reinterpret_cast<void*>(event.source_buffer + done), length - done};
      const ssize_t got = process_vm_readv(static_cast<pid_t>(event.source_pid), &here, 1, &there, 1, 0);
      if (got > 0) {
        done += static_cast<std::uint64_t>(got);
      } else {
        error = got < 0 ? errno : EFAULT;
      }
    }
  }
  const std::uint64_t copies = page_->copies_done.load(std::memory_order_relaxed) + 1;
  page_->copies_done.store(copies, std::memory_order_seq_cst);
  if (copies >= page_->notify_copies.load(std::memory_order_seq_cst)) {
    page_->notify_copies.store(far_future, std::memory_order_relaxed);
    attention_.raise();
  }
  return error;
}

void Payloads::copy_early(EventRing& events) {
  events.for_each([this](Event& event) {
    if (event.kind != EventKind::received || (event.flags & event_flag::payload_memory) == 0) return;
    const int error = copy_from_sender(event, reinterpret_cast<char*>(event.buffer));
    if (error != 0 && event.error == 0) event.error = error;
    event.flags &= ~event_flag::payload_memory;
  });
}

void Payloads::serve(std::uint32_t wanted) {
  void* own = reinterpret_cast<void*>(page_->service.address);
  char* staged = base_ + page_->service.arena_offset;
  if (page_->service.is_write != 0) {
    memcpy(own, staged, page_->service.bytes);
  } else {
    memcpy(staged, own, page_->service.bytes);
  }
  page_->service.done.store(wanted, std::memory_order_release);
}

}  // namespace dryfly::rank
