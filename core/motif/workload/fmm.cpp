// The one-sided exchange of a fast multipole method, rank by rank as programs/proxy/fmm.c has it
// (docs/model/skeleton-fmm.md): an operation for each box that a rank needs of another, and a fence after so many of
// the group's list.
//
// Parameters, in base units: what, get or put; boxes, along a side of a group's cube; bytes, of a box's expansion; ops,
// between two fences; list, turns or ranks; groups, of ranks with numbers in a row; library, whose barrier a fence is:
// MPICH's accesses are counted, Open MPI's have events.
#include "core/motif/workload/fmm.hpp"

#include <algorithm>
#include <string>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace fmm {

Cube::Cube(std::uint32_t boxes, std::uint32_t ranks) : boxes_(boxes), grid_(Grid::near_cube(ranks)) {
  if (boxes < 2 * grid_.sides[0]) {
    throw SpecError("boxes = " + std::to_string(boxes) + ": accepted is a number from " +
                    std::to_string(2 * grid_.sides[0]) + ", two for each of the ranks along a side");
  }
}

std::vector<std::uint32_t> Cube::parts_around(std::uint32_t part, std::size_t axis) const {
  std::vector<std::uint32_t> parts;
  const std::uint32_t sides = grid_.sides[axis];
  const std::uint32_t last = begin(part + 1, axis) + 2;
  for (std::uint32_t at = begin(part, axis) + boxes_ - 2; at < last + boxes_; ++at) {
    const std::uint32_t box = at % boxes_;
    auto found = static_cast<std::uint32_t>(std::uint64_t{box} * sides / boxes_);
    while (begin(found + 1, axis) <= box) ++found;
    parts.push_back(found);
  }
  return parts;
}

std::vector<Run> Cube::gets(std::uint32_t rank) const {
  const std::array<std::uint32_t, 3> at = grid_.place_of(rank);
  std::array<std::vector<std::uint32_t>, 3> parts;
  for (std::size_t axis = 0; axis < 3; ++axis) parts[axis] = parts_around(at[axis], axis);
  std::vector<Run> runs;
  for (const std::uint32_t z : parts[2]) {
    for (const std::uint32_t y : parts[1]) {
      for (const std::uint32_t x : parts[0]) {
        const std::uint32_t owner = (z * grid_.sides[1] + y) * grid_.sides[0] + x;
        if (owner == rank) continue;
        if (runs.empty() || runs.back().rank != owner) runs.push_back({owner, 0});
        ++runs.back().count;
      }
    }
  }
  return runs;
}

std::vector<std::vector<Run>> Cube::puts() const {
  const std::uint32_t ranks = grid_.sides[0] * grid_.sides[1] * grid_.sides[2];
  std::vector<std::vector<Run>> all(ranks);
  for (std::uint32_t target = 0; target < ranks; ++target) {
    for (const Run& run : gets(target)) {
      std::vector<Run>& runs = all[run.rank];
      if (runs.empty() || runs.back().rank != target) runs.push_back({target, 0});
      runs.back().count += run.count;
    }
  }
  return all;
}

List::List(const std::vector<std::uint32_t>& counts, bool in_turns) : counts_(counts) {
  for (const std::uint32_t count : counts) size_ += count;
  if (!in_turns) return;
  const std::uint32_t most = *std::ranges::max_element(counts);
  std::vector<std::uint64_t> last(most + 1);  // how many ranks have so many
  for (const std::uint32_t count : counts) ++last[count];
  std::uint64_t at = 0;
  std::uint64_t ranks = counts.size();
  for (std::uint32_t turn = 0; turn < most; ++turn) {
    turns_.push_back(at);
    ranks -= last[turn];
    at += ranks;
  }
}

std::vector<std::uint64_t> List::positions(std::uint32_t rank) const {
  std::vector<std::uint64_t> found(counts_[rank]);
  std::uint64_t before = 0;
  for (std::uint32_t other = 0; other < rank; ++other) before += turns_.empty() ? counts_[other] : 1;
  if (turns_.empty()) {
    for (std::uint64_t& each : found) each = before++;
    return found;
  }
  std::vector<std::uint32_t> last(found.size() + 1);  // how many ranks before it have so many
  for (std::uint32_t other = 0; other < rank; ++other) {
    if (counts_[other] <= found.size()) ++last[counts_[other]];
  }
  for (std::size_t turn = 0; turn < found.size(); ++turn) {
    before -= last[turn];
    found[turn] = turns_[turn] + before;
  }
  return found;
}

}  // namespace fmm

namespace {

struct Exchange {
  bool is_put = false;
  Bytes size;
  Told told = Told::by_counter;
  std::uint64_t ops = 0;
  std::uint32_t places = 0;  // ranks of a group
  const std::vector<std::vector<fmm::Run>>& runs;
  const std::vector<std::vector<std::uint64_t>>& positions;  // as the runs, the same in all groups
  std::uint64_t list_size = 0;
  const Selection& selection;
  Duration longest;
};

Task fence(Rank& me, const Communicator& ranks, const Selection& selection) {
  co_await me.wait_all();
  co_await run_collective(me, ranks, {.what = Collective::barrier, .size = {}}, selection);
}

Task perform(Rank& me, Exchange& exchange) {
  const std::uint32_t first = me.id() / exchange.places * exchange.places;
  const Communicator group(first, 1, exchange.places, 1);
  const std::vector<std::uint64_t>& positions = exchange.positions[me.id() - first];
  auto run = exchange.runs[me.id() - first].begin();
  std::uint32_t of_run = 0;
  std::size_t next = 0;
  co_await fence(me, group, exchange.selection);
  co_await run_collective(me, world(me), {.what = Collective::barrier, .size = {}}, exchange.selection);
  const Instant begun = me.now();
  for (std::uint64_t end = exchange.ops; end - exchange.ops < exchange.list_size; end += exchange.ops) {
    for (; next < positions.size() && positions[next] < end; ++next) {
      if (exchange.is_put) {
        me.put(first + run->rank, exchange.size, exchange.told);
      } else {
        me.get(first + run->rank, exchange.size, exchange.told);
      }
      if (++of_run < run->count) continue;
      of_run = 0;
      ++run;
    }
    co_await fence(me, group, exchange.selection);
  }
  exchange.longest = std::max(exchange.longest, me.now() - begun);
}

bool is_first_of(Parameters& parameters, const std::string& name, const std::string& first, const std::string& second) {
  const std::string word = parameters.text_or(name, first);
  if (word != first && word != second) {
    throw SpecError(name + " = `" + word + "`: accepted is " + first + " or " + second);
  }
  return word == first;
}

}  // namespace

Answer predict_fmm(Stage& stage, Parameters& parameters) {
  const bool is_get = is_first_of(parameters, "what", "get", "put");
  const bool in_turns = is_first_of(parameters, "list", "turns", "ranks");
  const auto groups = static_cast<std::uint32_t>(parameters.number_or("groups", 1, 1, UINT32_MAX));
  if (stage.ranks() % groups != 0) {
    throw SpecError("groups = " + std::to_string(groups) + ": accepted is a number that divides the " +
                    std::to_string(stage.ranks()) + " ranks");
  }
  const std::uint32_t places = stage.ranks() / groups;
  const fmm::Cube cube(static_cast<std::uint32_t>(parameters.number_or("boxes", 16, 2, 1024)), places);
  const Bytes size{parameters.number_or("bytes", 1056, 1, UINT32_MAX)};
  const std::uint64_t ops = parameters.number_or("ops", 2000, 1, UINT32_MAX);
  const std::string library = parameters.text_or("library", "mpich");
  const Selection selection = Selection::of_library(library);
  parameters.check_all_used();

  std::vector<std::vector<fmm::Run>> runs;
  if (is_get) {
    for (std::uint32_t rank = 0; rank < places; ++rank) runs.push_back(cube.gets(rank));
  } else {
    runs = cube.puts();
  }
  std::vector<std::uint32_t> counts(places);
  for (std::uint32_t rank = 0; rank < places; ++rank) {
    for (const fmm::Run& run : runs[rank]) counts[rank] += run.count;
  }
  const fmm::List list(counts, in_turns);
  std::vector<std::vector<std::uint64_t>> positions;
  for (std::uint32_t rank = 0; rank < places; ++rank) positions.push_back(list.positions(rank));
  Exchange exchange{.is_put = !is_get,
                    .size = size,
                    .told = library == "mpich" ? Told::by_counter : Told::by_event,
                    .ops = ops,
                    .places = places,
                    .runs = runs,
                    .positions = positions,
                    .list_size = list.size(),
                    .selection = selection,
                    .longest = {}};
  Answer answer;
  stage.run([&](Rank& me) { return perform(me, exchange); }, answer, {});
  answer.time = exchange.longest;
  answer.figures.emplace_back("operations", static_cast<double>(list.size()));
  answer.figures.emplace_back("fences", static_cast<double>((list.size() + ops - 1) / ops));
  answer.add_sides("grid", cube.grid().sides);
  answer.chosen = selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
