#include "core/motif/schedule/balance.hpp"

#include <algorithm>
#include <vector>

#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

// Sums over all messages to a rank: those of sends and receives are equal if each message has a receive.
struct Target {
  std::uint64_t sum = 0;
  std::int64_t surplus = 0;
  bool any = false;
};

std::uint64_t print_of(const Exchange& exchange) {
  return mix(mix(std::uint64_t{exchange.source} << 32 | exchange.tag) + 1);
}

void add(Target& target, const Exchange& exchange) {
  target.sum += exchange.sends ? print_of(exchange) : -print_of(exchange);
  target.surplus += exchange.sends ? 1 : -1;
  target.any = target.any || (!exchange.sends && (exchange.source == any_rank || exchange.tag == any_tag));
}

bool is_uneven(const Target& target) { return target.any ? target.surplus != 0 : target.sum != 0; }

std::string of_all(std::uint32_t target, std::uint64_t sent, std::uint64_t received) {
  return "rank " + std::to_string(target) + " is sent " + std::to_string(sent) + " messages and receives " +
         std::to_string(received);
}

bool is_before(const Exchange& a, const Exchange& b) {
  if (a.source != b.source) return a.source < b.source;
  if (a.tag != b.tag) return a.tag < b.tag;
  return a.step < b.step;
}

// All exchanges are of one target.
Unmatched find(std::vector<Exchange> exchanges, bool any) {
  if (!any) std::sort(exchanges.begin(), exchanges.end(), is_before);
  for (auto begin = exchanges.begin(); begin != exchanges.end();) {
    auto end = exchanges.end();
    if (!any) {
      end = std::find_if(begin, exchanges.end(), [&](const Exchange& other) {
        return other.source != begin->source || other.tag != begin->tag;
      });
    }
    const auto sent = static_cast<std::uint64_t>(std::count_if(begin, end, [](const auto& one) { return one.sends; }));
    const auto received = static_cast<std::uint64_t>(end - begin) - sent;
    const bool sends = sent > received;
    if (sent != received) {
      const auto last = std::find_if(std::make_reverse_iterator(end), std::make_reverse_iterator(begin),
                                     [&](const Exchange& one) { return one.sends == sends; });
      const std::string such =
          any ? "" : ", with tag " + std::to_string(last->tag) + " by rank " + std::to_string(last->source);
      return {*last, std::string("has no ") + (sends ? "receive" : "send") + ": " +
                         of_all(last->target, sent, received) + such};
    }
    begin = end;
  }
  DRYFLY_UNREACHABLE("the sums of these exchanges differ");
}

}  // namespace

std::optional<Unmatched> find_unmatched(std::uint32_t ranks, const EachExchange& each) {
  LargeVector<Target> targets(ranks);
  each([&](const Exchange& exchange) { add(targets[exchange.target], exchange); });
  const auto uneven = std::find_if(targets.begin(), targets.end(), is_uneven);
  if (uneven == targets.end()) return std::nullopt;
  const auto target = static_cast<std::uint32_t>(uneven - targets.begin());
  std::vector<Exchange> exchanges;
  each([&](const Exchange& exchange) {
    if (exchange.target == target) exchanges.push_back(exchange);
  });
  return find(std::move(exchanges), uneven->any);
}

}  // namespace dryfly::motif
