// The running job behind launch/supervise.hpp: what it knows of its ranks, and what it does at each event.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/ending.hpp"
#include "launch/foreign.hpp"
#include "launch/outcome.hpp"
#include "launch/pmi.hpp"
#include "launch/pmix.hpp"
#include "launch/starter.hpp"
#include "launch/supervise.hpp"

struct epoll_event;

namespace dryfly::launch {

// What an epoll event is about; `index` is a rank, or an entry of attached_.
enum class Source : std::uint32_t { pmi, pmix, rank, attached, attach_lines, signals, status, foreign, starter };

class Supervisor {
 public:
  Supervisor(const Plan& plan, const Options& options, const Signals& signals);
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;
  int run();

 private:
  using Clock = std::chrono::steady_clock;
  using Phase = PmiServer::Phase;

  struct Rank {
    Spawned process;
    int pmi_fd = -1;
    bool sending_blocked = false;
    int attached = 0;                // processes of it in attached_
    bool lost_sight = false;         // a process of it has ended and nobody knows how
    Phase phase = Phase::untouched;  // where another launcher serves its PMI
    bool over = false;
  };
  struct Attached {
    int rank;
    pid_t pid;
    int pidfd;
  };

  Phase phase(int rank) const;
  bool anyone_initialised() const;
  Rank& rank_state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  void watch(int fd, std::uint32_t events, Source source, int index);

  void start_all();
  void wait_for_events();
  void handle(const epoll_event& event);
  bool read_pmi(int rank);
  void send_answers();
  void send_answers_to(int rank);
  void check_pmi();
  void read_signals();
  void read_attach_lines();
  void attach(std::string_view line);
  void rank_ended(int rank);
  void rank_ended(int rank, const Ending& ending);
  void attached_ended(int index);
  void report() const;

  // Where another launcher starts the ranks.
  void start_foreign();
  void take_reports();
  void take_report(const ForeignReport& report);
  void answer_shim(int rank);
  void answer_with(int rank, const std::vector<std::string>& pmix, int pmi_fd);
  void conclude_by(const Ending& ending, int rank, pid_t pid);
  void starter_ended();
  void look_at_starter();
  void let_starter_end();

  const Plan& plan_;
  const Options& options_;
  const Signals& signals_;
  PmiServer pmi_;
  std::unique_ptr<PmixServer> pmix_;  // null: the job has none
  int epoll_fd_;
  int signal_fd_;
  std::vector<Rank> ranks_;
  bool watches_mpi_;  // ranks have the preload
  int running_ = 0;
  std::map<int, Attached> attached_;
  int next_attached_ = 0;
  std::string attach_text_;
  int ended_without_mpi_ = -1;  // a rank that will not come to any barrier
  std::optional<Clock::time_point> deadline_;
  Outcome outcome_;
  // Where another launcher starts the ranks; null without one.
  std::unique_ptr<Starter> starter_;
  std::unique_ptr<ForeignRanks> foreign_;
  Spawned starter_process_;
  bool starter_killed_ = false;
};

}  // namespace dryfly::launch
