#include "conductor/run_recorder.hpp"

#include <cstdio>

#include "clock/call_names.hpp"
#include "core/record/json_writer.hpp"

namespace dryfly {

namespace {

// The switch that has a port; ports are numbered switch by switch.
SwitchId switch_of_port(const Dragonfly& topology, std::uint32_t port) {
  std::uint32_t low = 0;
  std::uint32_t high = topology.switch_count();
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (topology.first_port({middle}) <= port ? low : high) = middle;
  }
  return {low};
}

void write_switch(JsonWriter& json, const char* end, const Dragonfly& topology, SwitchId at) {
  const GroupId group = topology.group_of(at);
  json.member(std::string(end) + "_group", group.value);
  json.member(std::string(end) + "_switch", at.value - topology.first_switch(group).value);
}

void write_nic(JsonWriter& json, const Dragonfly& topology, NicId nic) {
  const NodeId node = topology.node_of(nic);
  std::uint32_t index = 0;
  while (topology.nic_of(node, index) != nic) ++index;
  json.member("node", node.value);
  json.member("nic", index);
}

void write_ends(JsonWriter& json, const Dragonfly& topology, std::uint32_t port) {
  if (port >= topology.port_count()) {
    const NicId nic{port - topology.port_count()};
    json.member("kind", "injection");
    write_nic(json, topology, nic);
    write_switch(json, "to", topology, topology.switch_of(nic));
    return;
  }
  const SwitchId from = switch_of_port(topology, port);
  const Peer& peer = topology.peer(from, port - topology.first_port(from));
  write_switch(json, "from", topology, from);
  if (peer.kind == Peer::Kind::nic) {
    json.member("kind", "ejection");
    write_nic(json, topology, {peer.id});
    return;
  }
  json.member("kind", peer.kind == Peer::Kind::local_switch ? "local" : "global");
  write_switch(json, "to", topology, {peer.id});
}

}  // namespace

RunRecorder::RunRecorder(const std::string& folder, const Dragonfly& topology, Instant start)
    : folder_(folder),
      topology_(topology),
      start_(start),
      links_(start.ps),
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
  json.key("links");
  json.begin_array();
  for (const auto& [port, link] : links_.links()) {
    json.begin_object();
    json.member("port", port);
    write_ends(json, topology_, port);
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
  std::ofstream description(folder_ + "/recording.json", std::ios::binary);
  description << describe_links() << '\n';
  description.flush();
  if (messages_ && waits_ && steps && description) return true;
  for (const char* name : {"/messages.bin", "/waits.bin", "/links.bin", "/recording.json"}) {
    std::remove((folder_ + name).c_str());
  }
  return false;
}

}  // namespace dryfly
