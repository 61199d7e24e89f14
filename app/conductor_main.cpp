// dryfly-conductor: simulates the machine and keeps virtual time for the ranks of one run. Started by `dryfly run`.
//
//   dryfly-conductor --spec FILE --channel NAME --result FILE --status-fd N --attach-fd N --lifetime-fd N
//                    [--record FOLDER]
//
// Exit status 0: the life line was closed; 2: the spec cannot be used; 70: the system refuses what is needed. The
// sentence is on stderr.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

#include "conductor/conductor.hpp"
#include "core/spec/spec.hpp"

namespace {

constexpr int usage_status = 2;
constexpr int refused_status = 70;

std::map<std::string, std::string> parse_flags(int count, char** words) {
  std::map<std::string, std::string> flags;
  for (int at = 1; at + 1 < count; at += 2) flags[words[at]] = words[at + 1];
  for (const char* name : {"--spec", "--channel", "--result", "--status-fd", "--attach-fd", "--lifetime-fd"}) {
    if (!flags.contains(name)) throw dryfly::SpecError(std::string("flag ") + name + " is missing");
  }
  return flags;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw dryfly::SpecError("the resolved spec " + path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// One socket per rank, and a pidfd for each.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int count, char** words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // An interrupt is for the command that started us; it closes the life line when the ranks are gone.
  signal(SIGINT, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();
  try {
    const auto flags = parse_flags(count, words);
    const auto spec = dryfly::Spec::parse(read_file(flags.at("--spec")));
    dryfly::Conductor conductor(spec, flags.at("--channel"), flags.at("--result"),
                                dryfly::StatusLine(std::atoi(flags.at("--status-fd").c_str())),
                                dryfly::StatusLine(std::atoi(flags.at("--attach-fd").c_str())),
                                std::atoi(flags.at("--lifetime-fd").c_str()),
                                flags.contains("--record") ? flags.at("--record") : std::string());
    conductor.run();
  } catch (const dryfly::SpecError& error) {
    std::cerr << "dryfly: " << error.what() << '\n';
    return usage_status;
  } catch (const std::exception& error) {
    std::cerr << "dryfly: the simulator (dryfly-conductor): " << error.what() << '\n';
    return refused_status;
  }
  return 0;
}
