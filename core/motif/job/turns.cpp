#include "core/motif/job/turns.hpp"

#include <algorithm>
#include <numeric>

#include "core/unit/check.hpp"

namespace dryfly::motif {

void Turns::enter(PartsPool& pool, std::uint32_t parts, std::uint32_t nic, Leg leg) {
  const std::uint32_t of_nic = spec_.of_rendezvous + spec_.of_reads;
  if (nic >= asked_.size()) {
    asked_.resize(nic + 1);
    queues_.resize(std::size_t{nic + 1} * of_nic);
  }
  const auto drawn = static_cast<std::uint32_t>(nic::GetQueueSpec::draw(nic, asked_[nic]++, queues_for(leg)));
  Parts& answer = pool[parts];
  answer.queue = nic * of_nic + (is_asked_by_cpu(leg) ? spec_.of_rendezvous : 0) + drawn;
  Queue& queue = queues_[answer.queue];
  (queue.first == no_record ? queue.first : pool[queue.last].next) = parts;
  queue.last = parts;
}

Turns::Granted Turns::grant(PartsPool& pool, std::uint32_t name) {
  Queue& queue = queues_[name];
  if (queue.first == no_record) return {};
  const std::uint32_t first = queue.first;
  Parts& answer = pool[first];
  std::uint64_t* place = std::find(answer.under_way.begin(), answer.under_way.end(), 0);
  const std::uint64_t bytes = spec_.next_part(answer.held);
  if (place == answer.under_way.end() || (!answer.has_begun && !spec_.may_begin(bytes, queue.under_way))) return {};
  *place = bytes;
  answer.has_begun = true;
  queue.under_way += bytes;
  answer.held -= bytes;
  answer.left += bytes;
  if (answer.held == 0) queue.first = answer.next;
  return {first, bytes};
}

std::uint64_t Turns::of_one_part(const Parts& whole) {
  if (whole.queue == Parts::no_queue) return whole.left;
  std::uint64_t gone = std::accumulate(whole.under_way.begin(), whole.under_way.end(), std::uint64_t{0}) - whole.left;
  const std::uint64_t* part = whole.under_way.begin();
  for (; gone >= *part; ++part) gone -= *part;
  return *part - gone;
}

unsigned Turns::arrive(Parts& answer, std::uint64_t bytes) {
  answer.come += bytes;
  unsigned parts = 0;
  for (; answer.there < answer.under_way.size(); ++parts) {
    const std::uint64_t part = answer.under_way[answer.there];
    if (part == 0 || answer.come < part) break;
    answer.come -= part;
    ++answer.there;
  }
  return parts;
}

void Turns::end_oldest(Parts& answer) {
  DRYFLY_CHECK(answer.there > 0);
  --answer.there;
  end_part(answer, answer.under_way.front());
}

void Turns::end_part(Parts& answer, std::uint64_t bytes) {
  std::uint64_t* part = std::find(answer.under_way.begin(), answer.under_way.end(), bytes);
  DRYFLY_CHECK(part != answer.under_way.end());
  queues_[answer.queue].under_way -= bytes;
  std::move(part + 1, answer.under_way.end(), part);
  answer.under_way.back() = 0;
}

void Turns::end(const Parts& answer) {
  for (const std::uint64_t part : answer.under_way) queues_[answer.queue].under_way -= part;
}

}  // namespace dryfly::motif
