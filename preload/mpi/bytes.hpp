// How many bytes an MPI call's arguments name. A shape says which argument is the count, which the datatype, and when
// they count for nothing; it is a column of mpi_calls.def. Asked only after the call has succeeded, because then the
// handles are known to be good.
#pragma once

#include <cstdint>

namespace dryfly::preload {

struct Shape {
  enum class Counts : std::uint8_t { none, one, scalar, per_peer, vector };
  Counts counts = Counts::none;
  std::int8_t count = -1;
  std::int8_t datatype = -1;
  std::int8_t communicator = -1;
  std::int8_t root = -1;    // negative root (MPI_ROOT, MPI_PROC_NULL): the other arguments mean nothing
  std::int8_t buffer = -1;  // if this argument is MPI_IN_PLACE, take the other pair, or nothing
  std::int8_t other_count = -1;
  std::int8_t other_datatype = -1;
  bool is_wide = false;  // counts are MPI_Count, else int

  constexpr Shape or_in_place(int b, int c, int t) const {
    Shape s = not_in_place(b);
    s.other_count = static_cast<std::int8_t>(c);
    s.other_datatype = static_cast<std::int8_t>(t);
    return s;
  }
  constexpr Shape not_in_place(int b) const {
    Shape s = *this;
    s.buffer = static_cast<std::int8_t>(b);
    return s;
  }
  constexpr Shape wide() const {
    Shape s = *this;
    s.is_wide = true;
    return s;
  }
};

constexpr Shape shape(Shape::Counts counts, int count, int datatype, int communicator = -1, int root = -1) {
  Shape s;
  s.counts = counts;
  s.count = static_cast<std::int8_t>(count);
  s.datatype = static_cast<std::int8_t>(datatype);
  s.communicator = static_cast<std::int8_t>(communicator);
  s.root = static_cast<std::int8_t>(root);
  return s;
}
constexpr Shape nothing() { return {}; }
// One element of the datatype.
constexpr Shape one_element(int t) { return shape(Shape::Counts::one, -1, t); }
constexpr Shape elements(int c, int t) { return shape(Shape::Counts::scalar, c, t); }
constexpr Shape rooted(int c, int t, int root) { return shape(Shape::Counts::scalar, c, t, -1, root); }
// `c` elements for each process of the communicator.
constexpr Shape per_peer(int c, int t, int comm) { return shape(Shape::Counts::per_peer, c, t, comm); }
// An array of counts, one for each process of the communicator.
constexpr Shape vector(int c, int t, int comm) { return shape(Shape::Counts::vector, c, t, comm); }

std::uint64_t bytes_of(const Shape& shape, const long* words);

}  // namespace dryfly::preload
