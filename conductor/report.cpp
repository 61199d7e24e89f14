#include "conductor/report.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <utility>

#include "conductor/link_ends.hpp"
#include "core/record/json_writer.hpp"
#include "core/spec/fields.hpp"
#include "core/topology/address.hpp"
#include "preload/mpi/call_names.hpp"

namespace dryfly {

namespace {

constexpr const char* protocol_names[] = {"inline", "eager", "rendezvous", "put", "get", "atomic"};
static_assert(std::size(protocol_names) == static_cast<std::size_t>(Protocol::count));

void write_protocols(JsonWriter& json, const NicTotals& totals) {
  json.key("protocols");
  json.begin_array();
  for (std::size_t protocol = 0; protocol < std::size(protocol_names); ++protocol) {
    json.begin_object();
    json.member("protocol", protocol_names[protocol]);
    json.key("messages_by_hops");
    json.begin_array();
    for (std::uint32_t column = 0; column < NicTotals::on_node_column; ++column) {
      json.value(totals.messages[protocol][column]);
    }
    json.end_array();
    json.key("bytes_by_hops");
    json.begin_array();
    for (std::uint32_t column = 0; column < NicTotals::on_node_column; ++column) {
      json.value(totals.bytes[protocol][column]);
    }
    json.end_array();
    json.member("messages_on_node", totals.messages[protocol][NicTotals::on_node_column]);
    json.member("bytes_on_node", totals.bytes[protocol][NicTotals::on_node_column]);
    json.end_object();
  }
  json.end_array();
}

void write_matching(JsonWriter& json, const MatchingTotals& matching) {
  json.key("matching");
  json.begin_object();
  json.member("priority_list_max", matching.priority_list_max);
  json.member("overflow_list_max", matching.overflow_list_max);
  json.member("request_list_max", matching.request_list_max);
  json.member("engine_entries_max", matching.engine_entries_max);
  json.member("flow_control_events_full", matching.events_full);
  json.member("flow_control_append_failed", matching.append_failed);
  json.member("flow_control_no_match", matching.no_overflow_buffer);
  json.member("flow_control_request_full", matching.request_full);
  json.member("flow_control_unexpected", matching.unexpected_failed);
  json.member("to_software_append_failed", matching.software_by_append);
  json.member("to_software_unexpected", matching.software_by_unexpected);
  json.member("to_software_preemptive", matching.software_by_choice);
  json.member("headers_onloaded", matching.headers_onloaded);
  json.member("messages_refused", matching.messages_refused);
  json.member("messages_replayed", matching.messages_replayed);
  json.member("messages_paused", matching.messages_paused);
  json.member("notices_repeated", matching.notices_repeated);
  json.end_object();
}

void write_counter_names(JsonWriter& json) {
  json.key("counter_names");
  json.begin_array();
  for (std::size_t counter = 0; counter < counter_count; ++counter) json.value(counter_name(counter));
  json.end_array();
}

// Counters that are zero are left out: most are, and a large job has many NICs.
void write_nics(JsonWriter& json, const std::vector<NicCounters>& nics, const Dragonfly& topology) {
  json.key("nics");
  json.begin_array();
  for (const NicCounters& counters : nics) {
    const NodeId node = topology.node_of(counters.nic);
    const std::uint32_t index = topology.index_in_node(counters.nic);
    json.begin_object();
    json.member("nic", counters.nic.value);
    json.member("node", node.value);
    json.member("index", index);
    if (const auto address = fabric_address(topology, counters.nic)) json.member("address", *address);
    json.key("counters");
    json.begin_object();
    for (std::size_t counter = 0; counter < counter_count; ++counter) {
      if (counters.values[counter] != 0) json.member(counter_name(counter), counters.values[counter]);
    }
    json.end_object();
    json.end_object();
  }
  json.end_array();
}

const char* state_name(LinkHealth::State state) {
  switch (state) {
    case LinkHealth::State::up:
      return "up";
    case LinkHealth::State::fewer_lanes:
      return "fewer lanes";
    case LinkHealth::State::drained:
      return "drained";
    case LinkHealth::State::down:
      break;
  }
  return "down";
}

void write_link_health(JsonWriter& json, const std::vector<LinkHealth>& links, const Dragonfly& topology) {
  json.key("links");
  json.begin_array();
  for (const LinkHealth& link : links) {
    if (!link.has_had_trouble()) continue;
    json.begin_object();
    write_link_ends(json, topology, link.port);
    json.member("state", state_name(link.state));
    json.member("times_down", link.times_down);
    json.member("down_ps", link.down_ps);
    json.member("fewer_lanes_ps", link.fewer_lanes_ps);
    json.member("drained_ps", link.drained_ps);
    json.member("packets_lost", link.pieces_lost);
    json.member("replays", link.replays);
    json.end_object();
  }
  json.end_array();
}

void write_trackers(JsonWriter& json, const TrackerTotals& trackers) {
  json.key("trackers");
  json.begin_object();
  json.member("connections_opened", trackers.connections_opened);
  json.member("source_waits", trackers.source_waits);
  json.member("target_refusals", trackers.target_refusals);
  json.member("result_refusals", trackers.result_refusals);
  json.member("later_refusals", trackers.sequence_refusals + trackers.unmatched_refusals);
  json.member("pauses", trackers.pauses);
  json.member("longest_pause_ps", trackers.longest_pause_ps);
  json.member("source_connections_max", trackers.sources_max);
  json.member("target_connections_max", trackers.targets_max);
  json.member("results_max", trackers.results_max);
  json.end_object();
}

void write_triggers(JsonWriter& json, const Triggers& triggers) {
  json.key("triggered");
  json.begin_object();
  json.member("entries", static_cast<std::uint64_t>(triggers.entries()));
  json.member("waiting_max", static_cast<std::uint64_t>(triggers.waiting_max()));
  json.member("without_entry", triggers.entries_missed());
  json.end_object();
}

// What each class of the machine's profile has carried, whatever class was asked for.
void write_traffic_classes(JsonWriter& json, const NetworkTotals& totals, const Spec& spec) {
  json.key("traffic_classes");
  json.begin_array();
  const std::uint64_t classes = spec.number(fields::fabric_qos_classes);
  for (std::uint64_t index = 0; index < classes; ++index) {
    json.begin_object();
    json.member("class", spec.text(fields::fabric_qos_class_name, {index}));
    json.member("packets", totals.pieces_of.at(index));
    json.member("bytes", totals.bytes_of.at(index));
    json.end_object();
  }
  json.end_array();
}

// How long a rank read clocks again and again: all that passed between two readings less than a thousandth of the run
// apart, however few or many they are elsewhere.
std::uint64_t in_clock_loops_ps(const wire::ClockReadings& readings, std::uint64_t run_ps) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 1 < std::size(readings.passed_ps) && std::uint64_t{2} << i <= run_ps / 1000; ++i) {
    sum += readings.passed_ps[i];
  }
  return sum;
}

// A row each: the MPI call, from which boundary to which, how many, their bytes and what they cost. Without a name: of
// kinds that found no room.
void write_software(JsonWriter& json, const wire::RankPage& page) {
  json.key("software");
  json.begin_array();
  for (std::uint32_t at = 0; at < wire::software_spent_count && at <= page.software.kinds; ++at) {
    const wire::SoftwareSpent& spent = page.software.spent[at];
    if (spent.count == 0) continue;
    json.begin_array();
    const std::uint32_t call = spent.call & wire::schedule_call_mask;
    std::string name = at != 0 && call < preload::call_name_count ? preload::call_names[call] : "";
    name += wire::schedule_suffixes[spent.call >> wire::schedule_shift];
    json.value(name);
    json.value(spent.from);
    json.value(spent.to);
    json.value(spent.count);
    json.value(spent.bytes);
    json.value(spent.ps);
    json.end_array();
  }
  json.end_array();
}

void write_registration(JsonWriter& json, const wire::RegistrationCounts& counts) {
  json.key("registration");
  json.begin_object();
  json.member("hits", counts.hits);
  json.member("misses", counts.misses);
  json.member("uncached", counts.uncached);
  json.member("evicted", counts.evicted);
  json.member("invalidated", counts.invalidated);
  json.member("mapped", counts.mapped);
  json.member("mapped_pages", counts.mapped_pages);
  json.member("mapped_bytes", counts.mapped_bytes);
  json.member("unmapped", counts.unmapped);
  json.member("regions", counts.regions);
  json.member("faults", counts.faults);
  json.member("ps", counts.ps);
  json.end_object();
}

// As "1-8,53".
std::string numbers(const std::uint64_t* words, std::uint32_t end) {
  const auto has = [&](std::uint32_t bit) { return bit < end && (words[bit / 64] >> bit % 64 & 1) != 0; };
  std::string text;
  for (std::uint32_t first = 0; first < end; ++first) {
    if (!has(first)) continue;
    std::uint32_t last = first;
    while (has(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last != first) text += '-' + std::to_string(last);
    first = last;
  }
  return text;
}

void write_place(JsonWriter& json, const Rank& rank, std::uint32_t memory) {
  json.key("place");
  json.begin_object();
  json.member("processors", numbers(rank.seat.place.processors, wire::processors_max));
  json.member("memories", numbers(&rank.seat.place.memories, 64));
  json.member("core", rank.seat.core);
  json.member("memory", memory);
  json.member("others_on_core", rank.seat.share.others_on_core);
  json.end_object();
}

void write_ranks(JsonWriter& json, const std::vector<Rank>& ranks, const Tally& tally, const Places& places,
                 std::uint64_t start_ps, std::uint64_t run_ps) {
  json.key("ranks");
  json.begin_array();
  for (const Rank& rank : ranks) {
    const wire::RankTimes& times = rank.page->times;
    json.begin_object();
    json.member("rank", rank.id.value);
    json.member("node", rank.node.value);
    json.member("nic", rank.nic_index);
    json.member("pid", rank.process.pid);
    if (Places::is_bound(rank)) write_place(json, rank, places.memory_of(rank));
    json.member("virtual_time_ps", rank.gate.end_ps - start_ps);
    json.member("computing_ps", times.computing_ps);
    json.member("communicating_ps", times.communicating_ps);
    json.member("waiting_ps", times.waiting_ps);
    json.member("gpu_ps", times.gpu_ps);
    json.member("gpu_calls", times.gpu_calls);
    json.member("measured_ns", times.measured_ns);
    json.member("looked_ns", times.looked_ns);
    json.member("looked_unsure_ns", times.looked_unsure_ns);
    json.member("replay_mismatches", times.replay_mismatches);
    json.member("announced_work", times.announced_work);
    json.member("software_ps", times.software_ps);
    json.member("software_assumed_ps", times.software_assumed_ps);
    write_software(json, *rank.page);
    write_registration(json, times.registered);
    json.member("interrupted_ps", times.noise.interrupted_ps);
    json.member("delayed_ps", times.noise.delayed_ps);
    json.member("detours", times.noise.detours);
    json.member("several_threads", times.several_threads);
    json.member("classes_refused", times.classes_refused);
    json.member("forks", times.forks);
    json.member("clock_readings", rank.page->times.clock_readings.count);
    json.member("in_clock_loops_ps", in_clock_loops_ps(rank.page->times.clock_readings, run_ps));
    json.member("messages_sent", tally.sent_by(rank.id).messages);
    json.member("bytes_sent", tally.sent_by(rank.id).bytes);
    json.member("mpi_calls", rank.page->call_count.load());
    json.member("libmpi", rank.process.libmpi);
    json.member("libfabric", rank.process.libfabric);
    json.member("program", rank.process.program);
    json.end_object();
  }
  json.end_array();
}

void write_profile(JsonWriter& json, const std::vector<Rank>& ranks) {
  json.key("profile");
  json.begin_array();
  for (std::uint32_t call = 0; call < wire::call_profile_count && call < preload::call_name_count; ++call) {
    wire::CallProfile sum{};
    for (const Rank& rank : ranks) {
      sum.count += rank.page->profile[call].count;
      sum.bytes += rank.page->profile[call].bytes;
      sum.time_ps += rank.page->profile[call].time_ps;
    }
    if (sum.count == 0) continue;
    json.begin_object();
    json.member("call", preload::call_names[call]);
    json.member("count", sum.count);
    json.member("bytes", sum.bytes);
    json.member("time_ps", sum.time_ps);
    json.end_object();
  }
  json.end_array();
}

void write_storage(JsonWriter& json, const storage::StorageTraffic& storage) {
  json.key("storage");
  json.begin_array();
  for (const storage::StreamTotals& totals : storage.totals()) {
    json.begin_object();
    json.member("operations", totals.exchanges);
    json.member("bytes", totals.bytes);
    json.member("operations_failed", totals.failed);
    json.member("latency_sum_ps", totals.latency_sum.ps);
    json.member("latency_max_ps", totals.latency_max.ps);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

Report::Report(Spec spec, std::string path, const Sources& sources)
    : spec_(std::move(spec)),
      path_(std::move(path)),
      of_(sources),
      counter_sources_(spec_, sources.topology, sources.network, sources.nics, sources.storage) {}

void Report::start(Instant at) {
  start_ = at;
  counter_sources_.start(at);
  started_at_ = std::chrono::steady_clock::now();
}

std::string Report::write(const GateTotals& gates) const {
  const std::string unfinished = path_ + ".part";
  {
    std::ofstream file(unfinished, std::ios::binary);
    file << text(gates) << '\n';
    file.flush();
    if (!file) {
      std::remove(unfinished.c_str());
      return "the result cannot be written to " + path_;
    }
  }
  if (std::rename(unfinished.c_str(), path_.c_str()) != 0) return "the result cannot be renamed to " + path_;
  return {};
}

Fingerprint Report::fingerprint() const {
  Fingerprint all = of_.tally.fingerprint();
  if (spec_.text(fields::run_on_node) != "shared") return all;
  for (const Rank& rank : of_.ranks) all.add(Instant{rank.gate.end_ps - start_.ps}, rank.id, rank.id, Bytes{0});
  return all;
}

std::string Report::text(const GateTotals& gates) const {
  const NetworkTotals network = of_.network.totals();
  const NicTotals nics = of_.nics.totals();
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("virtual_time_ps", end().ps - start_.ps);
  json.member("start_ps", start_.ps);
  json.member("messages", of_.tally.totals().messages);
  json.member("bytes", of_.tally.totals().bytes);
  write_network(json, network, end());
  json.member("unexpected_messages", nics.unexpected_messages);
  json.member("list_entries_max", nics.list_entries_max);
  write_matching(json, nics.matching);
  write_triggers(json, of_.triggers);
  json.member("fingerprint", fingerprint().text());
  write_protocols(json, nics);
  write_counter_names(json);
  write_nics(json, counter_sources_.read(end()), of_.topology);
  if (of_.storage != nullptr) write_storage(json, *of_.storage);
  write_traffic_classes(json, network, spec_);
  write_ranks(json, of_.ranks, of_.tally, of_.places, start_.ps, end().ps - start_.ps);
  write_profile(json, of_.ranks);
  write_simulator(json, gates);
  json.end_object();
  return text;
}

void Report::write_network(JsonWriter& json, const NetworkTotals& totals, Instant end) const {
  json.member("packets", totals.pieces);
  json.member("packet_hops", totals.piece_hops);
  json.member("network_timeouts", totals.faults.network_timeouts);
  json.key("faults");
  json.begin_object();
  json.member("packets_lost", totals.faults.pieces_lost);
  json.member("packets_refused", totals.faults.pieces_refused);
  json.member("packets_sent_again", totals.faults.pieces_sent_again);
  json.member("transfers_failed", totals.faults.transfers_failed);
  json.member("link_replays", totals.faults.link_replays);
  write_link_health(json, of_.network.link_health(end), of_.topology);
  json.end_object();
  write_trackers(json, totals.trackers);
}

void Report::write_simulator(JsonWriter& json, const GateTotals& gates) const {
  json.key("simulator");
  json.begin_object();
  // Between the last MPI_Init and the last MPI_Finalize; it tells how fast the simulator is and enters no result.
  const std::chrono::nanoseconds wall = std::chrono::steady_clock::now() - started_at_;
  const wire::SegmentHeader& header = of_.segment.header();
  json.member("wall_ns", static_cast<std::uint64_t>(wall.count()));
  json.member("events", of_.engine.events_run());
  json.member("deliveries_before_start", of_.tally.before_start());
  json.member("cross_memory", header.cross_memory_allowed);
  json.member("arena_bytes_used", header.arena_top.load() - header.arena.offset);
  json.member("polls", gates.polls);
  json.member("waits", gates.waits);
  json.member("wakes", gates.wakes);
  json.member("sleeps", gates.sleeps);
  json.member("standstills", gates.standstills);
  json.member("outside", gates.outside);
  json.member("let_go", gates.let_go);
  json.end_object();
}

Instant Report::end() const {
  Instant end = start_;
  for (const Rank& rank : of_.ranks) end = std::max(end, Instant{rank.gate.end_ps});
  return end;
}

}  // namespace dryfly
