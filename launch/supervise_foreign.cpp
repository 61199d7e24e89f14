#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <system_error>
#include <utility>

#include "launch/supervisor.hpp"

namespace dryfly::launch {
namespace {

using namespace std::chrono_literals;

// From the end of a shim or a launcher until it counts as the cause: what really happened is reported within this.
constexpr auto presumed_for = 300ms;
// Hydra and its kin end when their last process has, after their output; one that does not is ended.
constexpr int starter_may_take_ms = 10'000;
constexpr int starter_may_take_after_failure_ms = 1'000;
constexpr int exit_of_noexec = 127;

std::string starter_line(const Ending& ending) {
  return (ending.by_signal ? "starter signal " : "starter exit ") + std::to_string(ending.value);
}

}  // namespace

void Supervisor::start_foreign() {
  starter_ = std::make_unique<Starter>(plan_, options_, signals_);
  foreign_ = std::make_unique<ForeignRanks>(plan_.size());
  watch(foreign_->fd(), EPOLLIN, Source::foreign, 0);
  const auto result = starter_->start_starter(foreign_->socket_name());
  if (const auto* failure = std::get_if<SpawnFailure>(&result)) {
    return conclude("noexec " + failure->path + " " + std::strerror(failure->error), exit_of_noexec);
  }
  starter_process_ = std::get<Spawned>(result);
  watch(starter_process_.pidfd, EPOLLIN, Source::starter, 0);
  running_ = plan_.size();
}

void Supervisor::take_reports() {
  for (const ForeignReport& report : foreign_->take()) {
    if (verdict_) return;
    take_report(report);
  }
  check_pmi();
}

void Supervisor::take_report(const ForeignReport& report) {
  Rank& state = rank_state(report.rank);
  switch (report.kind) {
    case ForeignReport::Kind::arrived:
      return answer_shim(report.rank);
    case ForeignReport::Kind::initialised:
      state.phase = Phase::initialised;
      return;
    case ForeignReport::Kind::finalised:
      state.phase = Phase::finalised;
      return;
    case ForeignReport::Kind::aborted:
      return conclude_abort(report.rank, report.value);
    case ForeignReport::Kind::started:
      state.process.pid = report.pid;
      return;
    case ForeignReport::Kind::exited:
    case ForeignReport::Kind::killed:
      if (state.over) return;
      state.over = true;
      return rank_ended(report.rank, {report.kind == ForeignReport::Kind::killed, report.value});
    case ForeignReport::Kind::noexec:
      return conclude("noexec " + report.path + " " + std::strerror(report.value), exit_of_noexec);
    case ForeignReport::Kind::told:
    case ForeignReport::Kind::vanished:
      if (state.over) return;
      if (presumption_) return;
      return presume("vanished rank " + std::to_string(report.rank) + " pid " + std::to_string(state.process.pid), 1);
  }
}

void Supervisor::presume(std::string line, int exit_status) {
  if (!presumption_) presumed_until_ = Clock::now() + presumed_for;
  presumption_ = Verdict{std::move(line), exit_status};
}

void Supervisor::answer_shim(int rank) {
  if (plan_.starter_serves_pmi) return answer_with(rank, {}, -1);
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw std::system_error(errno, std::generic_category(), "socketpair");
  }
  rank_state(rank).pmi_fd = sockets[0];
  watch(sockets[0], EPOLLIN, Source::pmi, rank);
  const auto pmix = pmix_ ? pmix_->environment_of(rank) : std::vector<std::string>{};
  answer_with(rank, pmix, sockets[1]);
}

void Supervisor::answer_with(int rank, const std::vector<std::string>& pmix, int pmi_fd) {
  auto texts = starter_->texts_for_shim(rank, pmix);
  if (plan_.starter_serves_pmi) texts.push_back("env DRYFLY_LAUNCH=" + foreign_->socket_name());
  foreign_->answer(rank, texts, pmi_fd);
}

void Supervisor::starter_ended() {
  take_reports();
  const auto ending = ending_of(starter_process_.pidfd, starter_process_.pid);
  if (verdict_ || !ending) return;
  close(starter_process_.pidfd);
  starter_process_.pidfd = -1;
  // Killed, it takes the shims along; otherwise it mostly ends because one of them has.
  if (!presumption_ || ending->by_signal) presume(starter_line(*ending), 1);
}

// The shims may go, and the launcher hands on what the ranks have printed.
void Supervisor::let_starter_end() {
  foreign_->release();
  if (starter_process_.pidfd < 0) return;
  std::array<pollfd, 2> sources{{{starter_process_.pidfd, POLLIN, 0}, {signal_fd_, POLLIN, 0}}};
  poll(sources.data(), sources.size(), verdict_ ? starter_may_take_after_failure_ms : starter_may_take_ms);
  read_signals();
  const auto ending = ending_of(starter_process_.pidfd, starter_process_.pid);
  if (ending && !ending->clean()) conclude(starter_line(*ending), 1);
}

}  // namespace dryfly::launch
