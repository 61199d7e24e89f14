// dryfly-launch: a small mpiexec for jobs whose ranks all run on this host.
//
//   dryfly-launch --plan FILE [--status-fd N] [--attach-fd N] [--timeout SECONDS]
//                 [--debug-rank R --debug-command WRAPPER...] -- PROGRAM ARGS...
//
// or, as the process between another launcher and a rank (launch/shim.hpp):
//
//   dryfly-launch --shim SOCKET VARIABLE
//
// The plan is described in launch/plan.hpp, the status line and exit status in launch/supervise.hpp. What is wrong
// with the command line or the plan is one sentence on standard error and exit status 2.
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/spec.hpp"
#include "launch/guard.hpp"
#include "launch/plan.hpp"
#include "launch/shim.hpp"
#include "launch/signals.hpp"
#include "launch/supervise.hpp"

namespace {

using namespace dryfly;
using namespace dryfly::launch;

template <class Number>
Number number(std::string_view option, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) {
    throw SpecError(std::string(option) + " " + std::string(text) + ": a number from 0 is accepted");
  }
  return value;
}

int descriptor(std::string_view option, std::string_view text) {
  const int fd = number<int>(option, text);
  if (fcntl(fd, F_GETFD) < 0) throw SpecError(std::string(option) + " " + std::string(text) + ": it is not open");
  if (fd > STDERR_FILENO) fcntl(fd, F_SETFD, FD_CLOEXEC);
  return fd;
}

struct CommandLine {
  std::string plan_file;
  Options options;
};

CommandLine parse_command_line(const std::vector<std::string>& words) {
  CommandLine result;
  auto& options = result.options;
  auto word = words.begin();
  for (; word != words.end() && *word != "--"; ++word) {
    const std::string& option = *word;
    if (option == "--debug-command") {
      while (word + 1 != words.end() && word[1] != "--") options.debug_command.push_back(*++word);
      continue;
    }
    if (word + 1 == words.end() || word[1] == "--") throw SpecError(option + ": its value is missing");
    const std::string& value = *++word;
    if (option == "--plan") {
      result.plan_file = value;
    } else if (option == "--status-fd") {
      options.status_fd = descriptor(option, value);
    } else if (option == "--attach-fd") {
      options.attach_fd = descriptor(option, value);
    } else if (option == "--timeout") {
      constexpr double most_seconds = 1e9;  // 31 years; its nanoseconds fit 63 bits
      const double seconds = number<double>(option, value);
      if (!(seconds <= most_seconds)) throw SpecError("--timeout " + value + ": at most 1e9 seconds are accepted");
      options.timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
    } else if (option == "--debug-rank") {
      options.debug_rank = number<int>(option, value);
    } else {
      throw SpecError(option +
                      ": options are --plan, --status-fd, --attach-fd, --timeout, --debug-rank and "
                      "--debug-command");
    }
  }
  if (word != words.end()) options.program.assign(word + 1, words.end());
  if (options.program.empty()) throw SpecError("the program is missing; it follows `--`");
  if (result.plan_file.empty()) throw SpecError("--plan FILE is missing");
  if ((options.debug_rank >= 0) != !options.debug_command.empty()) {
    throw SpecError("--debug-rank and --debug-command go together");
  }
  return result;
}

Plan read_plan(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw SpecError("--plan " + path + ": it cannot be read");
  return parse_plan(text);
}

int run(int argument_count, char** arguments) try {
  if (argument_count == 4 && std::string_view(arguments[1]) == "--shim") return run_shim(arguments[2], arguments[3]);
  const auto [plan_file, options] = parse_command_line({arguments + 1, arguments + argument_count});
  const Plan plan = read_plan(plan_file);
  if (options.debug_rank >= plan.size()) {
    throw SpecError("--debug-rank " + std::to_string(options.debug_rank) + ": the ranks are 0 to " +
                    std::to_string(plan.size() - 1));
  }
  const Signals signals = Signals::take_over();
  return guarded(
      signals, [&, &given = options] { return supervise(plan, given, signals); },
      [fd = options.status_fd](int signal_number) { dprintf(fd, "lost %d\n", signal_number); });
} catch (const SpecError& error) {
  std::fprintf(stderr, "dryfly-launch: %s\n", error.what());
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "dryfly-launch: %s\n", error.what());
  return 1;
}

}  // namespace

int main(int argument_count, char** arguments) { return run(argument_count, arguments); }
