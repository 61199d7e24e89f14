#include "conductor/run_recorder.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "testing/sample_machine.hpp"
#include "testing/test_stand.hpp"

namespace dryfly {
namespace {

TEST_CASE("a recording that cannot be written leaves no file") {
  const Spec spec = fabric::SampleMachine{}.spec();
  const Dragonfly topology(spec);
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "dryfly-run-recorder-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::filesystem::create_directory(folder / "links.bin");  // so that this one cannot be
  const nic::TestStand stand;
  const CounterSources counters(spec, topology, stand.network, stand.nics, nullptr);
  RunRecorder recorder(folder.string(), topology, counters, Instant{0});
  recorder.message({.called_ps = 1, .delivered_ps = 2});
  CHECK_FALSE(recorder.finish());
  CHECK_FALSE(std::filesystem::exists(folder / "messages.bin"));
  CHECK_FALSE(std::filesystem::exists(folder / "recording.json"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace dryfly
