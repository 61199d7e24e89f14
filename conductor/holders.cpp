#include "conductor/holders.hpp"

#include <dirent.h>

#include <cstring>
#include <fstream>
#include <string>

namespace dryfly {

namespace {

using namespace std::chrono_literals;
constexpr auto look_interval = 1ms;
constexpr auto asleep_for = 5ms;
constexpr std::uint64_t cpu_ns_max = 50'000'000;

struct Threads {
  bool all_asleep = true;
  std::uint64_t cpu_ns = 0;
};

// From a thread's folder in /proc: the command name is in parentheses and may hold anything; behind it is the state.
void add_thread(const std::string& folder, Threads& threads) {
  std::string text;
  std::getline(std::ifstream(folder + "/stat"), text);
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return;  // it has ended
  if (std::strchr("STtZX", text[name_end + 2]) == nullptr) threads.all_asleep = false;
  std::uint64_t cpu_ns = 0;
  std::ifstream(folder + "/schedstat") >> cpu_ns;
  threads.cpu_ns += cpu_ns;
}

Threads threads_of(std::uint32_t pid) {
  Threads threads;
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return threads;
  while (const dirent* entry = readdir(entries)) {
    if (entry->d_name[0] != '.') add_thread(folder + "/" + entry->d_name, threads);
  }
  closedir(entries);
  return threads;
}

}  // namespace

void Holders::look() {
  const auto now = WallClock::now();
  if (now - looked_at_ < look_interval) return;
  looked_at_ = now;
  for (Rank& rank : ranks_) {
    if (rank.state == RankState::running) look_at(rank, now);
  }
}

void Holders::look_at(Rank& rank, WallClock::time_point now) {
  Seen& seen = seen_[rank.id.value];
  const auto& page = *rank.page;
  const std::uint64_t mark = page.gate.count.load() + page.command_head.load() + page.clock_ps.load();
  const Threads threads = threads_of(rank.process.pid);
  if (mark != seen.mark || seen.since == WallClock::time_point{}) {
    seen = {.cpu_ns = threads.cpu_ns, .mark = mark, .since = now};
    return;
  }
  const bool computes = threads.cpu_ns - seen.cpu_ns >= cpu_ns_max;
  if ((threads.all_asleep && now - seen.since >= asleep_for) || computes) let_go_of(rank);
}

// Word first, then a last look: a process that enters the provider meanwhile either is seen here or sees the word.
void Holders::let_go_of(Rank& rank) {
  auto& page = *rank.page;
  page.away.store(1, std::memory_order_seq_cst);
  if (page.gate.count.load(std::memory_order_seq_cst) != rank.gate.ticket ||
      page.command_head.load(std::memory_order_seq_cst) != rank.commands.tail) {
    page.away.store(0, std::memory_order_seq_cst);
    return;
  }
  clock_.set_state(rank, RankState::away, never.ps);
}

}  // namespace dryfly
