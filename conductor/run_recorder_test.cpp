#include "conductor/run_recorder.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "testing/sample_machine.hpp"

namespace dryfly {
namespace {

TEST_CASE("a recording that cannot be written leaves no file") {
  const Dragonfly topology(fabric::SampleMachine{}.spec());
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "dryfly-run-recorder-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  std::filesystem::create_directory(folder / "links.bin");  // so that this one cannot be
  RunRecorder recorder(folder.string(), topology, Instant{0});
  recorder.message({.called_ps = 1, .delivered_ps = 2});
  CHECK_FALSE(recorder.finish());
  CHECK_FALSE(std::filesystem::exists(folder / "messages.bin"));
  CHECK_FALSE(std::filesystem::exists(folder / "recording.json"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace dryfly
