#include "conductor/stream_news.hpp"

#include <algorithm>

namespace dryfly {

void StreamNews::keep_at(RankId rank, std::uint32_t counter, std::uint64_t address) {
  states_[rank.value].buffers[counter] = address;
}

void StreamNews::write_back(RankId rank, std::uint32_t counter, std::uint64_t value) {
  const auto state = states_.find(rank.value);
  if (state == states_.end()) return;
  const auto buffer = state->second.buffers.find(counter);
  if (buffer == state->second.buffers.end() || buffer->second == 0) return;
  tell(rank,
       {.address = buffer->second, .value = wire::written_back(value), .counter = counter, .bytes = sizeof value});
}

void StreamNews::watch(RankId rank, std::uint64_t address, std::uint64_t bytes) {
  std::vector<Word>& words = states_[rank.value].words;
  const auto is_same = [&](const Word& word) { return word.address == address && word.bytes == bytes; };
  if (std::ranges::none_of(words, is_same)) words.push_back({address, bytes});
  tell_of(rank, {address, bytes});
}

void StreamNews::changed(RankId rank, std::uint64_t address, std::uint64_t bytes) {
  const auto state = states_.find(rank.value);
  if (state == states_.end()) return;
  for (const Word& word : state->second.words) {
    const bool overlaps = address < word.address + word.bytes && word.address < address + bytes;
    if (overlaps) tell_of(rank, word);
  }
}

void StreamNews::tell_of(RankId rank, const Word& word) {
  const std::uint64_t value = payloads_.look(rank, word.address, word.bytes);
  tell(rank, {.address = word.address, .value = value, .bytes = static_cast<std::uint32_t>(word.bytes)});
}

void StreamNews::tell(RankId rank, wire::News news) {
  news.at_ps = distances_.to_nic().at_cpu(engine_.now()).ps;
  outlet_.tell(rank, news);
}

}  // namespace dryfly
