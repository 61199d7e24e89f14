#include "conductor/memory.hpp"

#include <signal.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "conductor/rank.hpp"
#include "wire/futex.hpp"

namespace dryfly {

namespace {

using Transfer = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

int move(Transfer transfer, std::uint32_t pid, char* here, std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const iovec local{here + done, bytes - done};
    const iovec remote{reinterpret_cast<void*>(address + done), bytes - done};
    const ssize_t moved = transfer(static_cast<pid_t>(pid), &local, 1, &remote, 1, 0);
    if (moved <= 0) return moved < 0 ? errno : EFAULT;
    done += static_cast<std::uint64_t>(moved);
  }
  return 0;
}

}  // namespace

int copy_between(std::uint32_t from_pid, std::uint64_t from, std::uint32_t to_pid, std::uint64_t to,
                 std::uint64_t bytes) {
  constexpr std::uint64_t piece_max = 1 << 20;
  std::vector<char> piece(std::min(bytes, piece_max));
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t length = std::min(bytes - done, piece_max);
    if (const int error = move(process_vm_readv, from_pid, piece.data(), from + done, length)) return error;
    if (const int error = move(process_vm_writev, to_pid, piece.data(), to + done, length)) return error;
    done += length;
  }
  return 0;
}

int RankMemory::read(RankId rank, std::uint32_t pid, std::uint64_t address, void* to, std::uint64_t bytes) {
  if (segment_.header().cross_memory_allowed != 0) {
    return move(process_vm_readv, pid, static_cast<char*>(to), address, bytes);
  }
  return ask(rank, pid, false, address, static_cast<char*>(to), bytes);
}

int RankMemory::write(RankId rank, std::uint32_t pid, std::uint64_t address, const void* from, std::uint64_t bytes) {
  char* data = static_cast<char*>(const_cast<void*>(from));
  if (segment_.header().cross_memory_allowed != 0) return move(process_vm_writev, pid, data, address, bytes);
  return ask(rank, pid, true, address, data, bytes);
}

int RankMemory::ask(RankId rank, std::uint32_t pid, bool is_write, std::uint64_t address, char* data,
                    std::uint64_t bytes) {
  constexpr std::uint64_t piece_max = 1 << 20;
  auto& page = segment_.page(rank);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t piece = std::min(bytes - done, piece_max);
    const std::uint64_t staging = arena_.allocate(piece);
    if (staging == 0) return ENOMEM;
    char* staged = segment_.base() + staging;
    if (is_write) std::memcpy(staged, data + done, piece);
    page.service.is_write = is_write ? 1 : 0;
    page.service.address = address + done;
    page.service.bytes = piece;
    page.service.arena_offset = staging;
    const std::uint32_t ticket = page.service.request.load() + 1;
    page.service.request.store(ticket, std::memory_order_release);
    // The rank may be asleep at its gate, or about to be: wake it again until it has answered. Virtual time stands
    // still meanwhile.
    bool answered = false;
    while (!(answered = page.service.done.load(std::memory_order_acquire) == ticket) &&
           kill(static_cast<pid_t>(pid), 0) == 0) {
      nudge(page);
      constexpr long pause_ns = 50'000;
      wire::futex_wait(page.service.done, ticket - 1, pause_ns);
    }
    if (answered && !is_write) std::memcpy(data + done, staged, piece);
    wire::Arena::free(segment_.base(), staging);
    if (!answered) return ESRCH;
    done += piece;
  }
  return 0;
}

}  // namespace dryfly
