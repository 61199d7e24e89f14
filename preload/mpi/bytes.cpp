#include "preload/mpi/bytes.hpp"

#include "preload/mpi/mpi_library.hpp"

namespace dryfly::preload {

namespace {

std::int64_t scalar_count(bool wide, long word) { return wide ? word : static_cast<int>(word); }

std::int64_t element(bool wide, long array, std::int64_t index) {
  return wide ? reinterpret_cast<const std::int64_t*>(array)[index] : reinterpret_cast<const int*>(array)[index];
}

std::int64_t elements_of(const Shape& shape, int count, const long* words) {
  if (shape.counts == Shape::Counts::one) return 1;
  if (shape.counts == Shape::Counts::scalar) return scalar_count(shape.is_wide, words[count]);
  const long communicator = words[shape.communicator];
  if (is_intercommunicator(communicator)) return 0;
  const std::int64_t peers = comm_size(communicator);
  if (shape.counts == Shape::Counts::per_peer) return peers * scalar_count(shape.is_wide, words[count]);
  std::int64_t sum = 0;
  for (std::int64_t peer = 0; peer < peers; ++peer) sum += element(shape.is_wide, words[count], peer);
  return sum;
}

}  // namespace

std::uint64_t bytes_of(const Shape& shape, const long* words) {
  if (shape.counts == Shape::Counts::none) return 0;
  if (shape.root >= 0 && static_cast<int>(words[shape.root]) < 0) return 0;
  int count = shape.count;
  int datatype = shape.datatype;
  if (shape.buffer >= 0 && words[shape.buffer] == constants().in_place) {
    if (shape.other_count < 0) return 0;
    count = shape.other_count;
    datatype = shape.other_datatype;
  }
  const std::int64_t elements = elements_of(shape, count, words);
  return elements > 0 ? static_cast<std::uint64_t>(elements * type_size(words[datatype])) : 0;
}

}  // namespace dryfly::preload
