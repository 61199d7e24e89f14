// dryfly-motif: runs a skeleton on a simulated machine. Used by `dryfly predict`.
//
//   dryfly-motif SPEC WORKLOAD nodes=N ppn=P [level=latency|links|packet|flow] [on=NODE,...] name=value...
//
// cores=1|2: of a job at the levels latency and links; two are usual from 65,536 ranks on. The answer is the same.
// messages=FILE: a line for each message that was sent, in their order: source, target, bytes.
// most_packets=N: on the level `packet` what would be sent is counted first, and refused where it is more.
//
// One JSON object on standard output. Exit status 2: something cannot be used; the sentence is on stderr. 3: there is
// not enough memory.
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "core/motif/job/tally_carriage.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/record/json_writer.hpp"

namespace dryfly::motif {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw SpecError(path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string hexadecimal(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t place = 16; place-- > 0; value >>= 4) text[place] = "0123456789abcdef"[value & 15];
  return text;
}

void write_messages(const std::string& path, const std::vector<SentMessage>& sent) {
  std::ofstream file(path);
  for (const SentMessage& message : sent) {
    file << message.source << ' ' << message.target << ' ' << message.size.count << '\n';
  }
  if (!file.flush()) throw SpecError("messages = " + path + ": cannot be written");
}

void write(JsonWriter& json, const std::string& workload, const Stage& stage, const Answer& answer, double wall_s) {
  json.begin_object();
  json.member("workload", workload);
  json.member("ranks", std::uint64_t{stage.ranks()});
  json.member("virtual_ps", answer.time.ps);
  json.member("sampled", answer.sampled);
  json.member("error_bound", answer.error_bound);
  json.member("messages", answer.totals.messages);
  json.member("bytes", answer.totals.bytes);
  json.member("events", answer.totals.events);
  json.member("records_max", answer.totals.records_max);
  json.member("frame_bytes", answer.totals.frame_bytes);
  json.member("fingerprint", hexadecimal(answer.fingerprint));
  json.member("wall_s", wall_s);
  json.key("phases");
  json.begin_object();
  for (const auto& [name, time] : answer.phases) json.member(name, time.ps);
  json.end_object();
  json.key("figures");
  json.begin_object();
  for (const auto& [name, value] : answer.figures) json.member(name, value);
  json.end_object();
  json.key("chosen");
  json.begin_array();
  for (const std::string& sentence : answer.chosen) json.value(sentence);
  json.end_array();
  json.end_object();
}

// The workload is run without a network. Whatever else stops it then stops it later as well, or does not.
void refuse_too_much(const Spec& spec, const Workload& workload, Parameters parameters) {
  if (!parameters.has("most_packets")) return;
  Tally tally{.packets_most = parameters.number("most_packets", 1, UINT64_MAX)};
  parameters.text_or("messages", "");
  try {
    Stage stage(spec, parameters, &tally);
    workload.predict(stage, parameters);
  } catch (const std::exception&) {
    if (!tally.is_over()) return;
    throw SpecError("--level packet: the first " + std::to_string(tally.loads) + " messages have more than " +
                    std::to_string(tally.packets_most) + " packets, each of which is simulated on each link of its " +
                    "way: accepted are up to " + std::to_string(tally.packets_most) +
                    " in all, so fewer nodes, turns or bytes; --level links takes more, and so does a --timeout");
  }
}

int run(std::span<const char* const> words) {
  if (words.size() < 3) throw SpecError("accepted is dryfly-motif SPEC WORKLOAD name=value...");
  const Spec spec = Spec::parse(read_file(words[1]));
  const Workload& workload = workload_named(words[2]);
  refuse_too_much(spec, workload, Parameters(words.subspan(3)));
  Parameters parameters(words.subspan(3));
  Stage stage(spec, parameters);
  const std::string listing = parameters.text_or("messages", "");
  parameters.text_or("most_packets", "");
  std::vector<SentMessage> sent;
  if (!listing.empty()) stage.list_messages(sent);
  const auto begun = std::chrono::steady_clock::now();
  const Answer answer = workload.predict(stage, parameters);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun;
  if (!listing.empty()) write_messages(listing, sent);
  std::string text;
  JsonWriter json(text);
  write(json, words[2], stage, answer, wall.count());
  std::cout << text << '\n';
  return 0;
}

}  // namespace
}  // namespace dryfly::motif

int main(int count, char** words) {
  try {
    return dryfly::motif::run({words, static_cast<std::size_t>(count)});
  } catch (const std::bad_alloc&) {
    std::cerr << "dryfly-motif: there is not enough memory\n";
    return 3;
  } catch (const std::exception& error) {
    std::cerr << "dryfly-motif: " << error.what() << '\n';
    return 2;
  }
}
