#include "launch/foreign.hpp"

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>

#include "launch/local_socket.hpp"

namespace dryfly::launch {
namespace {

using Kind = ForeignReport::Kind;

[[noreturn]] void fail(const char* call) { throw std::system_error(errno, std::generic_category(), call); }

// Nobody can guess it, though anybody may connect.
std::string unguessable_name() {
  std::array<unsigned char, 16> random{};
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) fail("getrandom");
  std::string name = "dryfly-launch-";
  constexpr std::string_view digits = "0123456789abcdef";
  for (const unsigned char byte : random) name += {digits[byte >> 4], digits[byte & 15]};
  return name;
}

std::string_view next_word(std::string_view& rest) {
  const auto end = rest.find(' ');
  const auto word = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  return word;
}

std::optional<int> next_number(std::string_view& rest) {
  const auto word = next_word(rest);
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return {};
  return value;
}

struct Form {
  std::string_view word;
  Kind kind;
  bool has_pid;
  bool has_value;
  bool has_path;
};

constexpr std::array<Form, 9> forms{{
    {"rank", Kind::arrived, false, false, false},
    {"initialised", Kind::initialised, false, false, false},
    {"finalised", Kind::finalised, false, false, false},
    {"aborted", Kind::aborted, false, true, false},
    {"started", Kind::started, true, false, false},
    {"exit", Kind::exited, true, true, false},
    {"signal", Kind::killed, true, true, false},
    {"noexec", Kind::noexec, false, true, true},
    {"told", Kind::told, false, true, false},
}};

// Empty if it is no such line.
std::optional<ForeignReport> read_report(std::string_view line, int rank_count) {
  const auto word = next_word(line);
  const auto* form = std::ranges::find(forms, word, &Form::word);
  if (form == forms.end()) return {};
  ForeignReport report{};
  report.kind = form->kind;
  const auto rank = next_number(line);
  const auto pid = form->has_pid ? next_number(line) : std::optional(-1);
  const auto value = form->has_value ? next_number(line) : std::optional(0);
  if (!rank || !pid || !value || *rank < 0 || *rank >= rank_count) return {};
  report.rank = *rank;
  report.pid = *pid;
  report.value = *value;
  if (form->has_path) report.path = line;
  return report;
}

bool same_user(int fd) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == getuid();
}

void send_all(int fd, const std::string& text, int passed_fd) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed_fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &passed_fd, sizeof passed_fd);
  }
  while (part.iov_len > 0) {
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;  // the shim is gone, which its connection says too
    part.iov_base = static_cast<char*>(part.iov_base) + sent;
    part.iov_len -= static_cast<std::size_t>(sent);
    message.msg_control = nullptr;
    message.msg_controllen = 0;
  }
}

}  // namespace

ForeignRanks::ForeignRanks(int rank_count)
    : rank_count_(rank_count),
      name_(unguessable_name()),
      epoll_fd_(epoll_create1(EPOLL_CLOEXEC)),
      listening_fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  if (epoll_fd_ < 0) fail("epoll_create1");
  const LocalAddress address(name_);
  if (listening_fd_ < 0 || bind(listening_fd_, address.get(), address.bytes) != 0 ||
      listen(listening_fd_, SOMAXCONN) != 0) {
    fail("listen");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listening_fd_;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, listening_fd_, &event) != 0) fail("epoll_ctl");
}

void ForeignRanks::release() {
  if (listening_fd_ < 0) return;
  for (const auto& [fd, connection] : connections_) close(fd);
  connections_.clear();
  shims_.clear();
  close(listening_fd_);
  close(epoll_fd_);
  listening_fd_ = epoll_fd_ = -1;
}

void ForeignRanks::drop(int fd) {
  connections_.erase(fd);
  close(fd);
}

// First the connections that are there, then the new ones: whatever a rank said on a connection of its own before it
// ended is then among what is returned with its end, and is put before it.
std::vector<ForeignReport> ForeignRanks::take() {
  std::vector<ForeignReport> reports;
  std::array<epoll_event, 256> events{};
  const int count = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    if (events[static_cast<std::size_t>(i)].data.fd != listening_fd_) {
      read_from(events[static_cast<std::size_t>(i)].data.fd, reports);
    }
  }
  std::vector<int> of_ranks;
  for (const auto& [fd, connection] : connections_) {
    if (connection.rank < 0) of_ranks.push_back(fd);
  }
  for (const int fd : of_ranks) read_from(fd, reports);
  accept_all(reports);
  const auto said_by_rank = [](const ForeignReport& report) { return report.kind <= Kind::aborted; };
  std::ranges::stable_partition(reports, said_by_rank);
  return reports;
}

void ForeignRanks::accept_all(std::vector<ForeignReport>& reports) {
  int fd = -1;
  while ((fd = accept4(listening_fd_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0) {
    if (!same_user(fd)) {
      close(fd);
      continue;
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll_ctl");
    connections_.emplace(fd, Connection{});
    read_from(fd, reports);
  }
}

void ForeignRanks::read_from(int fd, std::vector<ForeignReport>& reports) {
  const auto found = connections_.find(fd);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  char bytes[4096];
  ssize_t size = 0;
  while ((size = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
    connection.text.append(bytes, static_cast<std::size_t>(size));
  }
  const bool ended = size == 0 || (errno != EAGAIN && errno != EINTR);
  std::size_t end = 0;
  while ((end = connection.text.find('\n')) != std::string::npos) {
    const std::string line = connection.text.substr(0, end);
    connection.text.erase(0, end + 1);
    understand(fd, connection, line, reports);
  }
  if (!ended) return;
  if (connection.rank >= 0) {
    reports.push_back({Kind::vanished, connection.rank, -1, 0, {}});
    shims_.erase(connection.rank);
  }
  drop(fd);
}

void ForeignRanks::understand(int fd, Connection& connection, const std::string& line,
                              std::vector<ForeignReport>& reports) {
  auto report = read_report(line, rank_count_);
  if (!report) return;  // not of this dryfly; its connection will end
  if (report->kind == Kind::arrived) {
    if (connection.rank >= 0 || !shims_.emplace(report->rank, fd).second) return;
    connection.rank = report->rank;
  }
  reports.push_back(std::move(*report));
}

void ForeignRanks::answer(int rank, const std::vector<std::string>& texts, int pmi_fd) {
  std::string answer;
  for (const std::string& text : texts) answer.append(text).push_back('\0');
  answer.push_back('\0');
  if (const auto shim = shims_.find(rank); shim != shims_.end()) send_all(shim->second, answer, pmi_fd);
  if (pmi_fd >= 0) close(pmi_fd);
}

}  // namespace dryfly::launch
