#include "conductor/run_recorder.hpp"

#include <cstdio>

#include "conductor/link_ends.hpp"
#include "core/record/json_writer.hpp"
#include "preload/mpi/call_names.hpp"

namespace dryfly {

RunRecorder::RunRecorder(const std::string& folder, const Dragonfly& topology, const CounterSources& counters,
                         Instant start)
    : folder_(folder),
      topology_(topology),
      start_(start),
      links_(start.ps),
      counters_(counters, start),
      messages_(folder + "/messages.bin", std::ios::binary),
      waits_(folder + "/waits.bin", std::ios::binary) {}

std::string RunRecorder::describe_links() const {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("start_ps", start_.ps);
  json.member("step_ps", links_.step_ps());
  json.member("messages", message_count_);
  json.key("calls");  // by their numbers in the ranks' own records
  json.begin_array();
  for (const char* name : preload::call_names) json.value(name);
  json.end_array();
  counters_.describe(json, topology_);
  json.key("links");
  json.begin_array();
  for (const auto& [port, link] : links_.links()) {
    json.begin_object();
    json.member("port", port);
    write_link_ends(json, topology_, port);
    json.member("steps", link.steps.size());
    json.member("longest_wait_ps", link.longest_wait_ps);
    json.key("waits");
    json.begin_array();
    for (const std::uint64_t count : link.waits) json.value(count);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return text;
}

bool RunRecorder::finish() {
  messages_.flush();
  waits_.flush();
  std::ofstream steps(folder_ + "/links.bin", std::ios::binary);
  for (const auto& [port, link] : links_.links()) {
    static_assert(sizeof(LinkRecord::Step) == 3 * sizeof(std::uint64_t));
    steps.write(reinterpret_cast<const char*>(link.steps.data()),
                static_cast<std::streamsize>(link.steps.size() * sizeof(LinkRecord::Step)));
  }
  steps.flush();
  const bool has_counters = counters_.write(folder_ + "/counters.bin");
  std::ofstream description(folder_ + "/recording.json", std::ios::binary);
  description << describe_links() << '\n';
  description.flush();
  if (messages_ && waits_ && steps && has_counters && description) return true;
  for (const char* name : {"/messages.bin", "/waits.bin", "/links.bin", "/counters.bin", "/recording.json"}) {
    std::remove((folder_ + name).c_str());
  }
  return false;
}

}  // namespace dryfly
