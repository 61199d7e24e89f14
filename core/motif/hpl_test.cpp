// The skeleton of HPL: messages and bytes against what follows from the grid, and samples against the whole.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "core/motif/workload/hpl/problem.hpp"
#include "core/motif/workload/hpl/row_moves.hpp"
#include "core/motif/workload/work_rates.hpp"
#include "core/motif/workload/workload.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly::motif {
namespace {

// Processors of 1 TF/s and 100 GB/s a node, GPUs of 10 TF/s and 1 TB/s that take 5 us for a call.
Spec sample(std::uint64_t seed = 1) {
  fabric::SampleMachine machine;
  machine.groups = 8;
  machine.nodes = 16;
  machine.seed = seed;
  machine.more +=
      "nic.inline_bytes 192\nnic.pushed_bytes 96\nnic.eager_bytes 18433\nnic.rendezvous_head_bytes 2048\n"
      "nic.egress_latency_ps 333560\nnic.dma_read_latency_ps 600000\nnic.ingress_latency_ps 333560\n"
      "nic.command_interval_ps 29600\nnic.list_entries 16384\nnic.list_entries_share_ppm 1000000\n"
      "nic.command_latency_ps 300000\nnic.completion_latency_ps 300000\nnode.local_latency_ps 300000\n"
      "node.local_rate_bytes_per_s 12000000000\nnode.copy_ps 33000\nhost.send_ps 385000\nhost.receive_ps 70000\n"
      "host.rma_ps 385000\nhost.completion_ps 315000\nhost.poll_ps 30000\nhost.clock_read_ps 25000\n"
      "host.match_ps 100000\ncompute.cpu.latency_ps 0\ncompute.cpu.memory_bytes_per_s 100000000000\n"
      "compute.cpu.fp64_per_s 1000000000000\ncompute.cpu.fp32_per_s 2000000000000\n"
      "compute.cpu.half_per_s 4000000000000\ncompute.gpu.latency_ps 5000000\n"
      "compute.gpu.memory_bytes_per_s 1000000000000\ncompute.gpu.fp64_per_s 10000000000000\n"
      "compute.gpu.fp32_per_s 20000000000000\ncompute.gpu.half_per_s 40000000000000\n";
  return machine.spec();
}

Answer predict(const std::vector<std::string>& words, std::uint64_t seed = 1) {
  const Spec spec = sample(seed);
  std::vector<const char*> given;
  for (const std::string& word : words) given.push_back(word.c_str());
  Parameters parameters(given);
  Stage stage(spec, parameters);
  return predict_hpl(stage, parameters);
}

std::vector<std::string> problem(std::uint64_t order, std::uint64_t block, std::uint64_t rows, std::uint64_t columns) {
  return {"nodes=" + std::to_string(rows * columns),
          "ppn=1",
          "n=" + std::to_string(order),
          "nb=" + std::to_string(block),
          "p=" + std::to_string(rows),
          "q=" + std::to_string(columns)};
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

double seconds(const Answer& answer) { return static_cast<double>(answer.time.ps) * 1e-12; }

// Of N = 256, NB = 64 on one process column of four: 4 panels.
//   Search for pivots: recursive doubling of 4 sends 4 * 2 messages of 3 + 2 * 64 numbers for each of 256 columns.
//   Solving: a tree to 4 processes has 3 messages of 64 numbers for each of 4 blocks. The row has one process.
//   Rows: one process has the column b alone to the right of the last panel, none of the panels has fewer than 1
//   column.
constexpr std::uint64_t searches = 256 * 4 * 2;
constexpr std::uint64_t search_bytes = searches * (3 + 2 * 64) * 8;
constexpr std::uint64_t solving = 4 * 3;
constexpr std::uint64_t solving_bytes = solving * 64 * 8;

// The rows of U and those that leave the top, by the moves that the pivots make: a binary exchange passes all of U but
// a process's own rows to it, so 3 times U in all; displaced rows go down a tree of two levels.
TEST_CASE("messages and bytes on one process column are those that follow from its pivots") {
  const Answer answer = predict(with(problem(256, 64, 4, 1), {"swap=binary", "split=1", "full=1"}));
  std::vector<std::string> words = problem(256, 64, 4, 1);
  words.erase(words.begin(), words.begin() + 2);
  std::vector<const char*> given;
  for (const std::string& word : words) given.push_back(word.c_str());
  Parameters parameters(given);
  const hpl::Problem shape = hpl::Problem::read(parameters, 4);
  hpl::RowMovesOfPanels moves(shape);
  std::uint64_t row_bytes = 0;
  for (std::uint64_t panel = 0; panel < 4; ++panel) {
    const hpl::RowMoves& of = moves.of(panel);
    const std::uint64_t columns = 256 + 1 - 64 * (panel + 1);
    CHECK(of.gathered.back() == 64);
    std::uint64_t rows = 3 * 64;
    rows += of.displaced[4] - of.displaced[2];  // to the position in the middle, for itself and the last
    rows += of.displaced[2] - of.displaced[1];
    rows += of.displaced[4] - of.displaced[3];
    row_bytes += rows * columns * 8;
  }
  CHECK(answer.totals.bytes == search_bytes + solving_bytes + row_bytes);
  CHECK(answer.totals.messages >= searches + solving + 4 * 4);
}

// On one process row a panel goes to q - 1 others, however: N = 512, NB = 64, 8 panels. The last columns have fewer
// rows, and a panel is as long as its stride, a multiple of 8 that is none of 512, asks for.
std::uint64_t panel_bytes(std::uint64_t order, std::uint64_t block) {
  std::uint64_t bytes = 0;
  for (std::uint64_t done = block; done <= order; done += block) {
    bytes += (block * block + block + hpl::column_stride(order - done) * block) * 8;
  }
  return bytes;
}

TEST_CASE("every broadcast hands each panel to all others of its row") {
  for (const std::uint64_t columns : {2U, 3U, 4U, 7U}) {
    // A tree for 8 blocks of 64 numbers, and the sum of 512: Rabenseifner's, halves and back among a power of two, and
    // the whole to and from each of those that are beyond it.
    const std::uint64_t power = std::bit_floor(columns);
    const std::uint64_t solving_of_row =
        8 * (columns - 1) * 64 * 8 + 2 * 512 * 8 * (power - 1) + 2 * (columns - power) * 512 * 8;
    for (const char* kind : {"1ring", "1ringM", "2ring", "2ringM"}) {
      const Answer answer = predict(with(problem(512, 64, 1, columns), {std::string("bcast=") + kind, "full=1"}));
      CHECK(answer.totals.bytes == (columns - 1) * panel_bytes(512, 64) + solving_of_row);
    }
    // The long ways: down the tree goes what each needs for itself and those below, then each piece goes all round.
    const Answer answer = predict(with(problem(512, 64, 1, columns), {"bcast=long", "full=1"}));
    CHECK(answer.totals.bytes > (columns - 1) * panel_bytes(512, 64) + solving_of_row);
    CHECK(answer.totals.bytes <= (columns + 3) * panel_bytes(512, 64) + solving_of_row);
  }
}

TEST_CASE("each variant ends, in a time of its own, and the same command gives the same fingerprint") {
  const std::vector<std::string> usual = with(problem(768, 32, 3, 5), {"full=1"});
  const Answer first = predict(usual);
  CHECK(predict(usual).fingerprint == first.fingerprint);
  CHECK(predict(usual).time == first.time);
  for (const char* other :
       {"bcast=2ringM", "bcast=long", "bcast=longM", "swap=binary", "equil=0", "pmap=column", "depth=0", "split=1",
        "nbmin=4", "pivot=collective", "gpu=beside", "pfact=gpu", "pcie_bytes_per_s=1000000000"}) {
    CAPTURE(std::string(other));
    const Answer answer = predict(with(usual, {other}));
    CHECK(answer.time.ps > 0);
    CHECK(answer.fingerprint != first.fingerprint);
  }
}

TEST_CASE("with more than two pieces the recursion's variants multiply other shapes") {
  const std::vector<std::string> pieces = with(problem(768, 96, 2, 2), {"full=1", "ndiv=4", "nbmin=4"});
  const std::uint64_t right = predict(pieces).fingerprint;
  CHECK(predict(with(pieces, {"rfact=left"})).fingerprint != right);
  CHECK(predict(with(pieces, {"rfact=crout"})).fingerprint != right);
}

TEST_CASE("a sample's bound holds the time of the whole, for three seeds, with and without a GPU beside") {
  for (const char* gpu : {"gpu=blocking", "gpu=beside"}) {
    const std::vector<std::string> words = with(problem(48000, 96, 4, 6), {gpu, "level=latency", "part=1048576"});
    const double whole = seconds(predict(with(words, {"full=1"})));
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const Answer answer = predict(with(words, {"stretches=8", "stretch=4", "warm=4"}), seed);
      CAPTURE(std::string(gpu));
      CAPTURE(seed);
      CHECK(answer.sampled);
      CHECK(answer.error_bound < 0.05);
      CHECK(std::abs(seconds(answer) / whole - 1) <= answer.error_bound);
      CHECK(answer.totals.messages < 500'000);
    }
  }
}

TEST_CASE("a sample grows until its bound is small enough, to all panels if need be") {
  const std::vector<std::string> words =
      with(problem(48000, 96, 4, 6), {"level=latency", "part=1048576", "stretches=6", "stretch=4"});
  const Answer usual = predict(words);
  CHECK(usual.sampled);
  CHECK(usual.error_bound <= 0.05);
  const Answer near = predict(with(words, {"bound=10000"}));
  CHECK(near.sampled);
  CHECK(near.error_bound <= 0.01);
  CHECK(near.figures.size() > usual.figures.size());
  const Answer whole = predict(with(words, {"bound=1"}));
  CHECK(!whole.sampled);
  CHECK(whole.time == predict(with(words, {"full=1"})).time);
}

TEST_CASE("phases add up to the ranks' time, and flops are HPL's by the time") {
  const Answer answer = predict(with(problem(768, 32, 3, 5), {"full=1"}));
  std::uint64_t sum_ps = 0;
  for (const auto& [name, time] : answer.phases) sum_ps += time.ps;
  CHECK(static_cast<double>(sum_ps) == doctest::Approx(static_cast<double>(answer.time.ps)).epsilon(0.02));
  const double n = 768;
  CHECK(answer.figures[0].second == doctest::Approx((2.0 / 3.0 * n * n * n + 1.5 * n * n) / seconds(answer)));
}

TEST_CASE("announced work takes the roof line, and the shape of a product lowers a GPU's rate") {
  const Spec spec = sample();
  const WorkRates plain(spec, 2, {}, Where::faster);
  // 2 * 1000^3 operations on half of 10 TF/s, and 5 us.
  CHECK(plain.product(1000, 1000, 1000, Precision::fp64) == Duration{400'000'000 + 5'000'000});
  // 8 KB by half of 100 GB/s: the processors, without the 5 us.
  CHECK(plain.memory(8'000) == Duration{160'000});
  const WorkRates on_cpu(spec, 2, {}, Where::cpu);
  CHECK(on_cpu.product(1000, 1000, 1000, Precision::fp64) == Duration{4'000'000'000});
  // 4 * 4 tiles of 256 on 10 units take two waves of 10: 1000 * 1000 of 20 * 256 * 256 elements; 1000 of 1250 steps.
  const WorkRates shaped(spec, 2, {.tile = 256, .units = 10, .fill = 250}, Where::faster);
  const double share = 1e6 / (20.0 * 256 * 256) * 0.8;
  CHECK(static_cast<double>(shaped.product(1000, 1000, 1000, Precision::fp64).ps) ==
        doctest::Approx(4e8 / share + 5e6).epsilon(1e-6));
}

TEST_CASE("a leaf that stays in caches goes through memory twice, and fewer ranks at a panel have more of the node") {
  hpl::Problem one;
  CHECK(one.leaf_passes(8, 1000) == 3 + 3 * 7 / 2);
  one.panel_cache = 8 * 1000 * 8;
  CHECK(one.leaf_passes(8, 1000) == 2);
  CHECK(one.leaf_passes(8, 1001) == 13);
  const std::vector<std::string> two_of_a_node = {"nodes=4", "ppn=2", "n=512", "nb=64", "p=2", "q=4", "pfact=cpu"};
  const auto time_with = [&](const std::vector<std::string>& more) { return predict(with(two_of_a_node, more)).time; };
  const Duration plain = time_with({});
  CHECK(time_with({"panel_cache=1000000"}) < plain);
  CHECK(time_with({"panel_ranks=1"}) < plain);
}

std::string refusal(const std::vector<std::string>& words) {
  try {
    predict(words);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("what cannot be run is refused with the field, its value and what is accepted") {
  const std::vector<std::string> good = problem(512, 64, 2, 4);
  std::vector<std::string> grid = good;
  grid[4] = "p=3";
  CHECK(refusal(grid) == "p * q = 3 * 4 = 12: accepted is 8, the number of ranks");
  CHECK(refusal(problem(32, 64, 2, 4)) == "n = 32: accepted is nb = 64 and more");
  CHECK(refusal(with(good, {"bcast=tree"})) == "bcast = `tree`: accepted is 1ring, 1ringM, 2ring, 2ringM, long, longM");
  CHECK(refusal(with(good, {"depth=2"})) == "depth = `2`: accepted is a whole number from 0 to 1");
  CHECK(refusal(with(good, {"swap_nics=4"})) == "NIC 4: accepted is 0 to 0, the NICs of a node");
  CHECK(refusal(with(good, {"swap_nics=a"})) == "swap_nics = `a`: accepted are numbers of NICs such as 0,4");
  CHECK(refusal(with(good, {"look=1"})) == "argument look: this workload has no such parameter");
}

}  // namespace
}  // namespace dryfly::motif
