#include "core/motif/workload/hpl/pivot_search.hpp"

#include <bit>

namespace dryfly::motif::hpl {
namespace {

constexpr std::uint32_t tag = 0;

std::uint32_t rank_at(const PivotMessage& message, std::uint32_t row) {
  return message.problem->rank_at(row, message.column);
}

}  // namespace

Task exchange_candidates(Rank& me, PivotMessage message) {
  const std::uint32_t size = message.problem->rows;
  const std::uint32_t power = std::bit_floor(size);
  if (message.row >= power) {
    const std::uint32_t peer = rank_at(message, message.row - power);
    co_await me.wait(me.isend(peer, tag, message.size, message.lane));
    co_await me.recv(peer, tag);
    co_return;
  }
  const bool stands_in = message.row + power < size;
  if (stands_in) co_await me.recv(rank_at(message, message.row + power), tag);
  for (std::uint32_t distance = 1; distance < power; distance *= 2) {
    const std::uint32_t peer = rank_at(message, message.row ^ distance);
    const Pending received = me.irecv(peer, tag);
    co_await me.wait(received, me.isend(peer, tag, message.size, message.lane));
  }
  if (stands_in) co_await me.wait(me.isend(rank_at(message, message.row + power), tag, message.size, message.lane));
}

Task allreduce_candidates(Rank& me, PivotMessage message) {
  const std::uint32_t power = std::bit_floor(message.problem->rows);
  const std::uint32_t further = message.problem->rows - power;
  const bool folds = message.row < 2 * further;
  if (folds && message.row % 2 == 0) {
    const std::uint32_t peer = rank_at(message, message.row + 1);
    co_await me.wait(me.isend(peer, tag, message.size, message.lane));
    co_await me.recv(peer, tag);
    co_return;
  }
  if (folds) co_await me.recv(rank_at(message, message.row - 1), tag);
  const std::uint32_t place = folds ? message.row / 2 : message.row - further;
  for (std::uint32_t distance = 1; distance < power; distance *= 2) {
    const std::uint32_t other = place ^ distance;
    const std::uint32_t peer = rank_at(message, other < further ? 2 * other + 1 : other + further);
    const Pending received = me.irecv(peer, tag);
    co_await me.wait(received, me.isend(peer, tag, message.size, message.lane));
  }
  if (folds) co_await me.wait(me.isend(rank_at(message, message.row - 1), tag, message.size, message.lane));
}

}  // namespace dryfly::motif::hpl
