#include "binding.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "agree.hpp"

namespace dryfly::hpl {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string status_field(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name + ":", 0) == 0) return line.substr(name.size() + 1);
  return "";
}

bool share(const std::vector<int>& a, const std::vector<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int each) { return std::find(b.begin(), b.end(), each) != b.end(); });
}

std::vector<int> numa_nodes_of(const std::vector<int>& cores) {
  std::vector<int> nodes;
  for (const int node : parse_list(first_line("/sys/devices/system/node/online")))
    if (share(cores, parse_list(first_line("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist"))))
      nodes.push_back(node);
  return nodes;
}

std::vector<int> nics_of(const std::vector<int>& nodes) {
  std::vector<int> nics;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/sys/class/cxi", none)) {
    const std::string name = entry.path().filename(), node = first_line(entry.path() / "device/numa_node");
    if (name.rfind("cxi", 0) == 0 && !node.empty() && share(nodes, {std::atoi(node.c_str())}))
      nics.push_back(std::atoi(name.c_str() + 3));
  }
  std::sort(nics.begin(), nics.end());
  return nics;
}

bool is_bound(const Place& place) { return place.cores.size() < place.online.size(); }

std::string encoded(const Place& place) {
  std::ostringstream text;
  text << place.host << '\n';
  for (const auto* list : {&place.cores, &place.online, &place.numa_nodes, &place.memory_nodes, &place.nics})
    text << list_text(*list) << '\n';
  return text.str();
}

Place decoded(const std::string& text) {
  Place place;
  std::istringstream stream(text);
  std::getline(stream, place.host);
  for (auto* list : {&place.cores, &place.online, &place.numa_nodes, &place.memory_nodes, &place.nics}) {
    std::string line;
    std::getline(stream, line);
    *list = parse_list(line);
  }
  return place;
}

}  // namespace

std::vector<int> parse_list(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    int from = 0, to = 0;
    char dash = 0;
    std::istringstream range(part);
    if (!(range >> from)) continue;
    to = range >> dash >> to ? to : from;
    for (int each = from; each <= to; ++each) numbers.push_back(each);
  }
  return numbers;
}

std::string list_text(const std::vector<int>& numbers) {
  std::ostringstream text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text << (i == 0 ? "" : ",") << numbers[i];
    if (end > i + 1) text << '-' << numbers[end - 1];
    i = end;
  }
  return text.str();
}

Place place_of_this_process() {
  Place place;
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  place.host = host;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &allowed)) place.cores.push_back(core);
  place.online = parse_list(first_line("/sys/devices/system/cpu/online"));
  place.numa_nodes = numa_nodes_of(place.cores);
  place.memory_nodes = parse_list(status_field("Mems_allowed_list"));
  place.nics = nics_of(place.numa_nodes);
  return place;
}

std::vector<Place> gather_places(const Place& mine, MPI_Comm where) {
  constexpr int kLength = 1024;  // lists of ranges are short
  int ranks = 1, rank = 0;
  MPI_Comm_size(where, &ranks);
  MPI_Comm_rank(where, &rank);
  std::string text = encoded(mine);
  text.resize(kLength);
  std::string all(rank == 0 ? static_cast<std::size_t>(kLength) * static_cast<std::size_t>(ranks) : 0, '\0');
  MPI_Gather(text.data(), kLength, MPI_CHAR, all.data(), kLength, MPI_CHAR, 0, where);
  std::vector<Place> places;
  for (std::size_t at = 0; at < all.size(); at += kLength) places.push_back(decoded(all.substr(at, kLength).c_str()));
  return places;
}

std::string nonsense(const std::vector<Place>& places, int threads) {
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const Place& place = places[rank];
    if (static_cast<std::size_t>(threads) > place.cores.size())
      return "--threads " + std::to_string(threads) + ": rank " + std::to_string(rank) + " may use " +
             std::to_string(place.cores.size()) + " cores (" + list_text(place.cores) + ")";
    if (!is_bound(place)) continue;
    // Of the ranks that were bound here, those that were given one of these cores.
    std::set<int> cores;
    std::string sharers;
    std::size_t count = 0;
    for (std::size_t other = 0; other < places.size(); ++other)
      if (places[other].host == place.host && is_bound(places[other]) && share(places[other].cores, place.cores)) {
        cores.insert(places[other].cores.begin(), places[other].cores.end());
        sharers += (count++ == 0 ? "" : ", ") + std::to_string(other);
      }
    if (count * static_cast<std::size_t>(threads) > cores.size())
      return "ranks " + sharers + " are bound to cores " + list_text({cores.begin(), cores.end()}) + " of " +
             place.host + ", fewer than they have threads; accepted is a core for each, or --binding any";
    if (!place.memory_nodes.empty() && !place.numa_nodes.empty() && !share(place.memory_nodes, place.numa_nodes))
      return "rank " + std::to_string(rank) + " runs on NUMA nodes " + list_text(place.numa_nodes) +
             " and may take memory from " + list_text(place.memory_nodes) +
             " only; accepted is memory beside its cores, or --binding any";
  }
  return "";
}

std::string map_text(const std::vector<Place>& places) {
  std::map<std::string, std::vector<int>> ranks;
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    ranks[encoded(places[rank])].push_back(static_cast<int>(rank));
  std::ostringstream text;
  for (const auto& [key, numbers] : ranks) {
    const Place place = decoded(key);
    text << "place: rank " << list_text(numbers) << " on " << place.host << ", cores " << list_text(place.cores)
         << (is_bound(place) ? "" : " (not bound)") << ", NUMA node " << list_text(place.numa_nodes) << ", memory of "
         << list_text(place.memory_nodes) << ", NIC " << (place.nics.empty() ? "none" : list_text(place.nics)) << "\n";
  }
  return text.str();
}

std::string checked_map(bool refuse, int threads) {
  if (std::getenv("DRYFLY_CHANNEL") != nullptr) return "";
  const std::vector<Place> places = gather_places(place_of_this_process(), MPI_COMM_WORLD);
  agree(refuse ? nonsense(places, threads) : "", "the ranks' places are refused", MPI_COMM_WORLD);
  return map_text(places);
}

}  // namespace dryfly::hpl
