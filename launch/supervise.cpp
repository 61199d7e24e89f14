#include "launch/supervise.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "core/unit/check.hpp"
#include "launch/descendants.hpp"
#include "launch/supervisor.hpp"

namespace dryfly::launch {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto grace = 500ms;            // between SIGTERM and SIGKILL
constexpr auto patience_with_kill = 4s;  // together they stay within the 5 s a failed job may take to end

// Hydra and its kin end when their last process has, after their output; one that does not is ended.
constexpr int starter_may_take_ms = 10'000;
constexpr int starter_may_take_after_failure_ms = 1'000;

std::uint64_t event_key(Source source, int index) {
  return static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint32_t>(index);
}

std::vector<int> nodes_of(const Plan& plan) {
  std::vector<int> nodes;
  for (const PlannedRank& rank : plan.ranks) nodes.push_back(rank.node);
  return nodes;
}

std::string starter_line(const Ending& ending) {
  return (ending.by_signal ? "starter signal " : "starter exit ") + std::to_string(ending.value);
}

[[noreturn]] void fail(const char* call) { throw std::system_error(errno, std::generic_category(), call); }

}  // namespace

Supervisor::Supervisor(const Plan& plan, const Options& options, const Signals& signals)
    : plan_(plan),
      options_(options),
      signals_(signals),
      pmi_("dryfly-" + std::to_string(getpid()) + "-" + std::to_string(Clock::now().time_since_epoch().count()),
           nodes_of(plan)),
      pmix_(plan.pmix_library.empty() || plan.starter_serves_pmi ? nullptr
                                                                 : std::make_unique<PmixServer>(plan, options.program)),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      signal_fd_(signalfd(-1, &signals.answered, SFD_CLOEXEC | SFD_NONBLOCK)),
      ranks_(plan.ranks.size()),
      watches_mpi_(std::ranges::any_of(
          plan.environment, [](const std::string& assignment) { return assignment.starts_with("DRYFLY_CHANNEL="); })) {
  if (epoll_fd_ < 0) fail("epoll_create1");
  if (signal_fd_ < 0) fail("signalfd");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  watch(signal_fd_, EPOLLIN, Source::signals, 0);
  watch(options_.status_fd, 0, Source::status, 0);
  if (pmix_) watch(pmix_->fd(), EPOLLIN, Source::pmix, 0);
  if (options_.attach_fd >= 0) {
    fcntl(options_.attach_fd, F_SETFL, O_NONBLOCK);
    watch(options_.attach_fd, EPOLLIN, Source::attach_lines, 0);
  }
  if (options_.timeout) deadline_ = Clock::now() + *options_.timeout;
}

void Supervisor::watch(int fd, std::uint32_t events, Source source, int index) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = event_key(source, index);
  // A status line may go to a plain file, which has no events.
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EPERM) fail("epoll_ctl");
}

Supervisor::Phase Supervisor::phase(int rank) const {
  if (plan_.starter_serves_pmi) return ranks_[static_cast<std::size_t>(rank)].phase;
  return pmix_ ? pmix_->phase(rank) : pmi_.phase(rank);
}

bool Supervisor::anyone_initialised() const {
  if (plan_.starter_serves_pmi) {
    return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.phase != Phase::untouched; });
  }
  return pmix_ ? pmix_->anyone_initialised() : pmi_.anyone_initialised();
}

void Supervisor::start_all() {
  if (!plan_.starter.empty()) return start_foreign();
  const Starter starter(plan_, options_, signals_);
  for (int rank = 0; rank < plan_.size(); ++rank) {
    const auto result = starter.start(rank, pmix_ ? pmix_->environment_of(rank) : std::vector<std::string>{});
    if (const auto* failure = std::get_if<SpawnFailure>(&result)) {
      return outcome_.conclude_noexec(failure->path, failure->error);
    }
    const auto& started = std::get<StartedRank>(result);
    rank_state(rank).process = started.process;
    rank_state(rank).pmi_fd = started.pmi_fd;
    watch(started.process.pidfd, EPOLLIN, Source::rank, rank);
    watch(started.pmi_fd, EPOLLIN, Source::pmi, rank);
    ++running_;
  }
}

int Supervisor::run() {
  start_all();
  while (!outcome_.decided() && (running_ > 0 || !attached_.empty())) wait_for_events();
  const bool ended_well = !outcome_.decided() && !outcome_.expects_more();
  if (foreign_ && ended_well) let_starter_end();
  outcome_.conclude("done", 0);
  report();
  if (foreign_ && !ended_well) let_starter_end();
  if (!end_all_descendants(grace, patience_with_kill)) {
    std::fprintf(stderr, "dryfly-launch: a process of the job does not end, stuck in the kernel even after SIGKILL\n");
  }
  return outcome_.exit_status();
}

void Supervisor::report() const {
  const std::string line = outcome_.line() + "\n";
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t written = write(options_.status_fd, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads; the exit status says it too
    left.remove_prefix(static_cast<std::size_t>(written));
  }
}

void Supervisor::wait_for_events() {
  const auto deadline = deadline_.value_or(Clock::time_point::max());
  const auto next = std::min(deadline, outcome_.presumed_until());
  int timeout_ms = -1;
  if (next != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    if (left <= 0) {
      if (next != outcome_.presumed_until()) return outcome_.conclude("timeout", exit_of_timeout);
      if (outcome_.expects_more() && any_descendant_runs() && outcome_.expects_longer()) return;
      return outcome_.conclude_presumed();
    }
    timeout_ms = static_cast<int>(std::min<std::int64_t>(left, 1'000'000'000));
  }
  std::array<epoll_event, 256> events;
  const int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count && !outcome_.decided(); ++i) handle(events[static_cast<std::size_t>(i)]);
}

void Supervisor::handle(const epoll_event& event) {
  const auto source = static_cast<Source>(event.data.u64 >> 32);
  const int index = static_cast<int>(event.data.u64 & 0xffffffffU);
  switch (source) {
    case Source::pmi:
      if ((event.events & EPOLLOUT) != 0) send_answers_to(index);
      if ((event.events & ~EPOLLOUT) != 0) read_pmi(index);
      send_answers();
      check_pmi();
      break;
    case Source::pmix:
      pmix_->clear();
      for (const int rank : pmix_->take_begun()) {
        while (read_pmi(rank)) {
        }
        pmi_.begin(rank);
      }
      check_pmi();
      break;
    case Source::rank:
      rank_ended(index);
      break;
    case Source::attached:
      if (attached_.contains(index)) attached_ended(index);
      break;
    case Source::attach_lines:
      read_attach_lines();
      break;
    case Source::signals:
      read_signals();
      break;
    case Source::foreign:
      take_reports();
      break;
    case Source::starter:
      starter_ended();
      break;
    case Source::status:
      outcome_.conclude_interrupted(SIGHUP);
      break;
  }
}

// False when there was nothing to read.
bool Supervisor::read_pmi(int rank) {
  Rank& state = rank_state(rank);
  if (state.pmi_fd < 0) return false;
  char bytes[16384];
  const ssize_t size = recv(state.pmi_fd, bytes, sizeof bytes, MSG_DONTWAIT);
  if (size > 0) {
    pmi_.receive(rank, {bytes, static_cast<std::size_t>(size)});
    return true;
  }
  if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
    close(state.pmi_fd);  // which also takes it out of the epoll set
    state.pmi_fd = -1;
  }
  return false;
}

void Supervisor::send_answers() {
  for (const int rank : pmi_.take_answered()) send_answers_to(rank);
}

void Supervisor::send_answers_to(int rank) {
  Rank& state = rank_state(rank);
  std::string& outgoing = pmi_.outgoing(rank);
  const ssize_t sent = state.pmi_fd < 0
                           ? static_cast<ssize_t>(outgoing.size())
                           : send(state.pmi_fd, outgoing.data(), outgoing.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    outgoing.clear();  // the other end is closed
  } else if (sent > 0) {
    outgoing.erase(0, static_cast<std::size_t>(sent));
  }
  const bool blocked = !outgoing.empty();
  if (blocked == state.sending_blocked || state.pmi_fd < 0) return;
  state.sending_blocked = blocked;
  epoll_event event{};
  // A client that does not fetch its answers is not read from either.
  event.events = blocked ? EPOLLOUT : EPOLLIN;
  event.data.u64 = event_key(Source::pmi, rank);
  epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, state.pmi_fd, &event);
}

void Supervisor::check_pmi() {
  if (watches_mpi_ && pmi_.unwatched()) {
    outcome_.conclude("unseen rank " + std::to_string(*pmi_.unwatched()), exit_of_refusal);
  }
  if (const auto abort = pmix_ ? pmix_->abort() : pmi_.abort()) outcome_.conclude_abort(abort->rank, abort->code);
  if (ended_without_mpi_ >= 0 && anyone_initialised()) {
    outcome_.expect_more("early rank " + std::to_string(std::exchange(ended_without_mpi_, -1)), 1);
  }
}

void Supervisor::read_signals() {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGINT && options_.debug_rank >= 0) continue;
    outcome_.conclude_interrupted(number);
  }
}

void Supervisor::read_attach_lines() {
  if (options_.attach_fd < 0) return;
  char bytes[4096];
  ssize_t size = 0;
  while ((size = read(options_.attach_fd, bytes, sizeof bytes)) > 0) {
    attach_text_.append(bytes, static_cast<std::size_t>(size));
  }
  if (size == 0) epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, options_.attach_fd, nullptr);
  std::size_t end = 0;
  while ((end = attach_text_.find('\n')) != std::string::npos) {
    attach(std::string_view(attach_text_).substr(0, end));
    attach_text_.erase(0, end + 1);
  }
}

void Supervisor::attach(std::string_view line) {
  int rank = -1;
  int pid = -1;
  const std::string text(line);
  const bool understood = std::sscanf(text.c_str(), "attached %d %d", &rank, &pid) == 2;
  DRYFLY_CHECK(understood && rank >= 0 && rank < plan_.size() && pid > 0);
  if (foreign_) take_reports();  // which process the shim has started
  Rank& state = rank_state(rank);
  if (state.process.pid == pid) return;
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (pidfd < 0) {
    state.lost_sight = true;
    return;
  }
  fcntl(pidfd, F_SETFD, FD_CLOEXEC);
  const int index = next_attached_++;
  attached_.emplace(index, Attached{rank, pid, pidfd});
  ++state.attached;
  watch(pidfd, EPOLLIN, Source::attached, index);
}

void Supervisor::attached_ended(int index) {
  const Attached process = attached_.at(index);
  const auto ending = ending_of(process.pidfd, process.pid);
  attached_.erase(index);
  close(process.pidfd);
  Rank& state = rank_state(process.rank);
  --state.attached;
  while (read_pmi(process.rank)) {
  }
  check_pmi();
  read_signals();
  if (!ending) {
    state.lost_sight = true;
  } else if (!ending->clean()) {
    conclude_by(*ending, process.rank, process.pid);
  } else if (phase(process.rank) == Phase::initialised) {
    outcome_.expect_more("early rank " + std::to_string(process.rank), 1);
  }
}

void Supervisor::rank_ended(int rank) {
  Rank& state = rank_state(rank);
  const auto ending = ending_of(state.process.pidfd, state.process.pid);
  if (!ending) return;
  close(state.process.pidfd);
  rank_ended(rank, *ending);
}

void Supervisor::rank_ended(int rank, const Ending& ending) {
  Rank& state = rank_state(rank);
  --running_;
  // What happened before the end, though epoll may tell of it later, is the cause: MPI_Abort, Ctrl-C at a terminal,
  // the death of the MPI process behind this wrapper.
  while (read_pmi(rank)) {
  }
  check_pmi();
  read_signals();
  read_attach_lines();
  for (auto next = attached_.begin(); next != attached_.end();) {
    const auto [index, process] = *next++;
    if (process.rank == rank && syscall(SYS_pidfd_send_signal, process.pidfd, 0, nullptr, 0) != 0) {
      attached_ended(index);
    }
  }
  if (!ending.clean()) {
    const auto hidden = state.lost_sight && !ending.by_signal ? signal_in_exit_code(ending.value) : std::nullopt;
    conclude_by(hidden ? Ending{true, *hidden} : ending, rank, state.process.pid);
  } else if (phase(rank) == Phase::untouched) {
    ended_without_mpi_ = rank;
    check_pmi();
  } else if (phase(rank) == Phase::initialised && state.attached == 0) {
    outcome_.expect_more("early rank " + std::to_string(rank), 1);
  }
  send_answers();
}

void Supervisor::conclude_by(const Ending& ending, int rank, pid_t pid) {
  if (ending.by_signal && foreign_) look_at_starter();
  // Killed, it takes the ranks along.
  if (ending.by_signal && starter_killed_) return outcome_.conclude_presumed();
  outcome_.conclude_by(ending, rank, pid);
}

void Supervisor::start_foreign() {
  starter_ = std::make_unique<Starter>(plan_, options_, signals_);
  foreign_ = std::make_unique<ForeignRanks>(plan_.size());
  watch(foreign_->fd(), EPOLLIN, Source::foreign, 0);
  const auto result = starter_->start_starter(foreign_->socket_name());
  if (const auto* failure = std::get_if<SpawnFailure>(&result)) {
    return outcome_.conclude_noexec(failure->path, failure->error);
  }
  starter_process_ = std::get<Spawned>(result);
  watch(starter_process_.pidfd, EPOLLIN, Source::starter, 0);
  running_ = plan_.size();
}

void Supervisor::take_reports() {
  for (const ForeignReport& report : foreign_->take()) {
    if (outcome_.decided()) return;
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
      return outcome_.conclude_abort(report.rank, report.value);
    case ForeignReport::Kind::started:
      state.process.pid = report.pid;
      return;
    case ForeignReport::Kind::exited:
    case ForeignReport::Kind::killed:
      if (state.over) return;
      state.over = true;
      return rank_ended(report.rank, {report.kind == ForeignReport::Kind::killed, report.value});
    case ForeignReport::Kind::noexec:
      return outcome_.conclude_noexec(report.path, report.value);
    case ForeignReport::Kind::told:
    case ForeignReport::Kind::vanished:
      if (state.over) return;
      if (outcome_.presumes()) return;
      return outcome_.presume(
          "vanished rank " + std::to_string(report.rank) + " pid " + std::to_string(state.process.pid), 1);
  }
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
  look_at_starter();
}

void Supervisor::look_at_starter() {
  if (starter_process_.pidfd < 0 || outcome_.decided()) return;
  const auto ending = ending_of(starter_process_.pidfd, starter_process_.pid);
  if (!ending) return;
  close(starter_process_.pidfd);
  starter_process_.pidfd = -1;
  starter_killed_ = ending->by_signal;
  // Killed, it takes the shims along; otherwise it mostly ends because one of them has.
  if (!outcome_.presumes() || ending->by_signal) outcome_.presume(starter_line(*ending), 1);
}

// The shims may go, and the launcher hands on what the ranks have printed.
void Supervisor::let_starter_end() {
  foreign_->release();
  if (starter_process_.pidfd < 0) return;
  std::array<pollfd, 2> sources{{{starter_process_.pidfd, POLLIN, 0}, {signal_fd_, POLLIN, 0}}};
  poll(sources.data(), sources.size(), outcome_.decided() ? starter_may_take_after_failure_ms : starter_may_take_ms);
  read_signals();
  const auto ending = ending_of(starter_process_.pidfd, starter_process_.pid);
  if (ending && !ending->clean()) outcome_.conclude(starter_line(*ending), 1);
}

int supervise(const Plan& plan, const Options& options, const Signals& signals) {
  Supervisor supervisor(plan, options, signals);
  return supervisor.run();
}

}  // namespace dryfly::launch
