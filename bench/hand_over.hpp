#pragma once
// What handing over the processor costs here, without MPI and without a simulation: round trips per second of two
// processes, directly or such that every message goes through a third, as two ranks and the conductor do. A direct
// round trip is two hand-overs, one through a third four. Bounds what bench/pingpong can reach;
// docs/decision/0001-separate-conductor.md quotes it.
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

namespace dryfly::bench {

enum class Waiting { sleep, yield, spin };

struct HandOver {
  bool with_conductor;
  Waiting rank;
  Waiting conductor;
  bool one_core;  // else the second rank has processor 1 for itself, or the conductor has processor 0
};

constexpr std::uint32_t hand_over_round_trips = 20'000;

// Passed from process to process: whoever finds its own number modulo the number of turns has the token.
struct Token {
  std::atomic<std::uint32_t> turn;
};

inline void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

inline void wait_for(std::atomic<std::uint32_t>& turn, std::uint32_t mine, Waiting how) {
  for (;;) {
    const std::uint32_t seen = turn.load();
    if (seen == mine) return;
    if (how == Waiting::sleep) {
      futex(turn, FUTEX_WAIT, seen);
    } else if (how == Waiting::yield) {
      sched_yield();
    }
  }
}

// Takes each turn of these that comes round; `turns` of them make one round trip.
inline void play(Token& token, const HandOver& variant, const std::vector<std::uint32_t>& own_turns,
                 std::uint32_t turns, Waiting how) {
  for (std::uint32_t trip = 0; trip < hand_over_round_trips; ++trip) {
    for (const std::uint32_t own : own_turns) {
      const std::uint32_t mine = trip * turns + own;
      wait_for(token.turn, mine, how);
      token.turn.store(mine + 1);
      if (variant.rank == Waiting::sleep || variant.conductor == Waiting::sleep) futex(token.turn, FUTEX_WAKE, 3);
    }
  }
}

inline void stay_on(unsigned processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
}

inline double round_trips_per_s(const HandOver& variant) {
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(1);
  auto& token = *static_cast<Token*>(memory);
  const std::uint32_t turns = variant.with_conductor ? 4 : 2;
  const std::uint32_t second_turn = turns / 2;
  std::vector<pid_t> children;
  const auto start = [&](unsigned processor, const std::vector<std::uint32_t>& own_turns, Waiting how) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      stay_on(processor);
      play(token, variant, own_turns, turns, how);
      _exit(0);
    }
    children.push_back(child);
  };
  const unsigned rank_processor = variant.one_core || !variant.with_conductor ? 0 : 1;
  const auto begin = std::chrono::steady_clock::now();
  start(rank_processor, {0}, variant.rank);
  start(variant.one_core ? 0 : 1, {second_turn}, variant.rank);
  if (variant.with_conductor) start(0, {1, 3}, variant.conductor);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  munmap(memory, 4096);
  return hand_over_round_trips / took.count();
}

inline unsigned processors() { return std::thread::hardware_concurrency(); }

}  // namespace dryfly::bench
