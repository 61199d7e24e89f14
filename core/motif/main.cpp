// dryfly-generator: measures a pattern of commands on a simulated machine, without processes. Used by
// `dryfly reproduce`.
//
//   dryfly-generator SPEC PATTERN name=value...
//
// NICs are given by node number and NIC of that node, `a=0.0 b=1.0`; crowds as a file with one NODE.NIC a line,
// `ranks=FILE`. One JSON object on standard output. Exit status 2: something cannot be used; the sentence is on stderr.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <numeric>
#include <string>

#include "core/host/cpu_costs.hpp"
#include "core/motif/patterns.hpp"
#include "core/record/json_writer.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::generator {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw SpecError(path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

class Arguments {
 public:
  Arguments(int count, char** words) {
    for (int at = 0; at < count; ++at) {
      const std::string word = words[at];
      const auto equals = word.find('=');
      if (equals == std::string::npos) throw SpecError("argument `" + word + "`: accepted is name=value");
      values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
  }
  const std::string& text(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw SpecError("argument " + name + " is missing");
    return found->second;
  }
  std::uint64_t number(const std::string& name) const { return parse(name, text(name)); }
  std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
    return values_.contains(name) ? number(name) : otherwise;
  }
  static std::uint64_t parse(const std::string& name, const std::string& text) {
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || stop != text.data() + text.size()) {
      throw SpecError(name + " = `" + text + "`: accepted is a whole number");
    }
    return value;
  }

 private:
  std::map<std::string, std::string> values_;
};

NicId nic_named(const Dragonfly& topology, const std::string& text) {
  const auto point = text.find('.');
  const std::uint64_t node = Arguments::parse("node", text.substr(0, point));
  const std::uint64_t index = point == std::string::npos ? 0 : Arguments::parse("nic", text.substr(point + 1));
  if (node >= topology.node_count() || index >= topology.nics_per_node({static_cast<std::uint32_t>(node)})) {
    throw SpecError("`" + text + "` is no NIC of this machine");
  }
  return topology.nic_of({static_cast<std::uint32_t>(node)}, static_cast<std::uint32_t>(index));
}

std::vector<NicId> crowd(const Dragonfly& topology, const std::string& path) {
  std::vector<NicId> nics;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) nics.push_back(nic_named(topology, line));
  if (nics.size() < 2) throw SpecError("ranks = `" + path + "`: at least two lines are needed");
  return nics;
}

Verb verb_named(const std::string& name) {
  const std::map<std::string, Verb> known{
      {"send", Verb::send}, {"write", Verb::write}, {"read", Verb::read}, {"atomic", Verb::atomic}};
  const auto found = known.find(name);
  if (found == known.end()) throw SpecError("operation = `" + name + "`: accepted is send, write, read or atomic");
  return found->second;
}

double deviation(const std::vector<std::uint64_t>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const std::uint64_t value : values)
    squares += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean);
  return std::sqrt(squares / count);
}

void write_times(JsonWriter& json, std::vector<std::uint64_t> times) {
  std::sort(times.begin(), times.end());
  json.member("mean_ps", std::accumulate(times.begin(), times.end(), std::uint64_t{0}) / times.size());
  json.member("min_ps", times.front());
  json.member("p99_ps", times[times.size() * 99 / 100]);
  json.member("max_ps", times.back());
  json.member("deviation_ps", std::llround(deviation(times)));
}

// As GPCNeT reports them: a latency is half of an exchange with both neighbours, a rate what a rank sends in it.
void ring(const Arguments& arguments, Stand& stand, JsonWriter& json) {
  const Ring ring{.size = Bytes{arguments.number("bytes", 8)},
                  .rings = arguments.number("rings", 2),
                  .warmup = arguments.number("warmup", 1),
                  .iterations = arguments.number("count", 1),
                  .outstanding = arguments.number("outstanding", 1),
                  .barrier = arguments.number("barrier", 0) != 0};
  RingTimes found =
      ring_ps(stand, crowd(stand.topology(), arguments.text("ranks")), ring, CpuCosts::read(stand.spec()));
  std::vector<std::uint64_t>& times = found.iterations_ps;
  const std::uint64_t bytes = 2 * ring.outstanding * ring.size.count;
  double rates = 0;
  for (const std::uint64_t time : times) rates += static_cast<double>(bytes) / (static_cast<double>(time) * 1e-12);
  std::sort(times.begin(), times.end());
  const std::uint64_t slow = times[times.size() * 99 / 100];
  for (std::uint64_t& time : times) time /= 2;
  write_times(json, times);
  json.member("mean_bytes_per_s", rates / static_cast<double>(times.size()));
  json.member("p99_bytes_per_s", static_cast<double>(bytes) / (static_cast<double>(slow) * 1e-12));
  double loops = 0;  // GPCNeT's mean rate: of what each rank sends in a ring, by the time of all its iterations
  const auto in_loop = static_cast<double>(bytes * ring.iterations);
  for (const std::uint64_t loop : found.loops_ps) loops += in_loop / (static_cast<double>(loop) * 1e-12);
  json.member("loop_bytes_per_s", loops / static_cast<double>(found.loops_ps.size()));
}

// The rate is that of the slowest pair, as mbw_mr counts; osu_mbw_mr takes the mean of the pairs' times.
void windows(const Arguments& arguments, Stand& stand, JsonWriter& json) {
  const Windows plan{.size = Bytes{arguments.number("bytes", 8)},
                     .count = std::max<std::uint64_t>(arguments.number("count", 1), 1),
                     .window = std::max<std::uint64_t>(arguments.number("window", 64), 1)};
  const std::vector<std::uint64_t> times =
      windows_ps(stand, crowd(stand.topology(), arguments.text("ranks")), plan, CpuCosts::read(stand.spec()));
  const auto pairs = static_cast<double>(times.size());
  const double bytes = pairs * static_cast<double>(plan.count * plan.window * plan.size.count);
  const auto sum = static_cast<double>(std::accumulate(times.begin(), times.end(), std::uint64_t{0}));
  json.member("bytes_per_s", bytes / (static_cast<double>(*std::max_element(times.begin(), times.end())) * 1e-12));
  json.member("mean_bytes_per_s", bytes / (sum / pairs * 1e-12));
}

void measure(const std::string& pattern, const Arguments& arguments, Stand& stand, JsonWriter& json) {
  const Bytes size{arguments.number("bytes", 8)};
  const std::uint64_t count = std::max<std::uint64_t>(arguments.number("count", 100), 1);
  const auto nic = [&](const char* name) { return nic_named(stand.topology(), arguments.text(name)); };
  if (pattern == "latency") {
    write_times(json, latencies_ps(stand, verb_named(arguments.text("operation")), nic("a"), nic("b"), size, count,
                                   Duration{arguments.number("gap_ps", 0)}));
  } else if (pattern == "stream") {
    const bool both_ways = arguments.number("both_ways", 0) != 0;
    const std::uint64_t time_ps = stream_ps(stand, verb_named(arguments.text("operation")), nic("a"), nic("b"), size,
                                            count, arguments.number("window", 64), both_ways);
    const double commands = static_cast<double>(count) * (both_ways ? 2 : 1);
    json.member("bytes_per_s", commands * static_cast<double>(size.count) / (static_cast<double>(time_ps) * 1e-12));
    json.member("operations_per_s", commands / (static_cast<double>(time_ps) * 1e-12));
  } else if (pattern == "ring") {
    ring(arguments, stand, json);
  } else if (pattern == "allreduce") {
    const std::vector<NicId> ranks = crowd(stand.topology(), arguments.text("ranks"));
    const CpuCosts costs = CpuCosts::read(stand.spec());
    if (arguments.number("loop", 0) == 0) {
      json.member("mean_ps", allreduce_ps(stand, ranks, size, count, costs));
    } else {
      const Loop loop{.size = size, .warmup = arguments.number("warmup", 1), .iterations = count};
      write_times(json, allreduces_ps(stand, ranks, loop, costs));
    }
  } else if (pattern == "uniform") {
    const std::vector<NicId> nics = crowd(stand.topology(), arguments.text("ranks"));
    const double rate = uniform_bytes_per_s(stand, nics, size, count, arguments.number("window", 8),
                                            stand.spec().number(fields::run_seed));
    json.member("bytes_per_s", rate);
    json.member("bytes_per_s_per_nic", rate / static_cast<double>(nics.size()));
  } else if (pattern == "windows") {
    windows(arguments, stand, json);
  } else {
    throw SpecError("pattern `" + pattern + "`: accepted is latency, stream, ring, allreduce, uniform or windows");
  }
}

}  // namespace
}  // namespace dryfly::generator

int main(int count, char** words) {
  try {
    if (count < 3) throw dryfly::SpecError("accepted is dryfly-generator SPEC PATTERN name=value...");
    const auto spec = dryfly::Spec::parse(dryfly::generator::read_file(words[1]));
    const dryfly::generator::Arguments arguments(count - 3, words + 3);
    dryfly::generator::Stand stand(spec);
    std::string text;
    dryfly::JsonWriter json(text);
    json.begin_object();
    dryfly::generator::measure(words[2], arguments, stand, json);
    json.end_object();
    std::cout << text << '\n';
  } catch (const std::exception& error) {
    std::cerr << "dryfly-generator: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
