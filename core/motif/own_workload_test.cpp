// The guide's example of a skeleton in C++ (docs/example/ring.cpp) is compiled as it stands there, and run.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/motif/workload/workload.hpp"
#include "testing/motif_stage.hpp"

namespace dryfly::motif {

Answer predict_ring(Stage& stage, Parameters& parameters);

namespace {

TEST_CASE("a skeleton of one's own says what it has sent, how long a step took, and what the library chose") {
  const Spec spec = motif_spec();
  std::vector<const char*> words{"nodes=4", "ppn=1", "steps=5", "bytes=1024", "work_ps=7000000"};
  Parameters parameters(words);
  Stage stage(spec, parameters);
  const Answer answer = predict_ring(stage, parameters);
  CHECK(answer.totals.messages == 4 * 5 + 4 * 2);  // and a sum by recursive doubling
  CHECK(answer.totals.bytes == 4 * 5 * 1024 + 4 * 2 * 8);
  CHECK(answer.time > Duration{7'000'000});
  CHECK(answer.chosen == std::vector<std::string>{"allreduce of 8 B on 4 ranks: recursive_doubling (mpich: bytes<=8)"});
  std::vector<const char*> wrong{"nodes=4", "ppn=1", "step=5"};
  Parameters unknown(wrong);
  Stage another(spec, unknown);
  CHECK_THROWS_WITH_AS(predict_ring(another, unknown), doctest::Contains("step"), SpecError);
}

}  // namespace
}  // namespace dryfly::motif
