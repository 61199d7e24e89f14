#include "core/spec/spec.hpp"

#include <doctest/doctest.h>

#include <string>

#include "core/spec/fields.hpp"

namespace dryfly {
namespace {

std::string refusal(const Spec& spec, const auto& read) {
  try {
    read(spec);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "none";
}

TEST_CASE("a field's capital letters become the numbers that it is read with") {
  CHECK(fields::topology_global.at({3, 12}) == "topology.global.3.12");
  CHECK(fields::fabric_qos_class_name.at({0}) == "fabric.qos.class.0.name");
  CHECK(fields::run_seed.at({}) == "run.seed");
}

TEST_CASE("a number outside its declared range is refused with the range") {
  const Spec spec = Spec::parse("fabric.nic.window_packets 65537\nfaults.7.lanes 0\nrun.ranks many\n");
  CHECK(refusal(spec, [](const Spec& s) { s.small(fields::fabric_nic_window_packets); }) ==
        "fabric.nic.window_packets = 65537: accepted are 1 to 65536");
  CHECK(refusal(spec, [](const Spec& s) { s.number(fields::faults_lanes, {7}); }) ==
        "faults.7.lanes = 0: accepted are 1 to 4");
  CHECK(refusal(spec, [](const Spec& s) { s.number(fields::run_ranks); }) ==
        "resolved spec: run.ranks = `many` is no whole number");
  CHECK(refusal(spec, [](const Spec& s) { s.number(fields::run_seed); }) == "resolved spec: run.seed is missing");
}

TEST_CASE("another field can make a range narrower, never wider") {
  const Spec spec = Spec::parse("nic.inline_bytes 193\nnic.pushed_bytes 100\n");
  CHECK(refusal(spec, [](const Spec& s) { s.number_between(0, 1000, fields::nic_inline_bytes); }) ==
        "nic.inline_bytes = 193: accepted are 0 to 192");
  CHECK(refusal(spec, [](const Spec& s) { s.number_between(0, 64, fields::nic_pushed_bytes); }) ==
        "nic.pushed_bytes = 100: accepted are 0 to 64");
}

TEST_CASE("a text with choices is one of them, and no part of one") {
  const auto routing = [](const Spec& s) { s.text(fields::fabric_routing_algorithm); };
  CHECK(refusal(Spec::parse("fabric.routing.algorithm adaptive\n"), routing) == "none");
  CHECK(refusal(Spec::parse("fabric.routing.algorithm adapt\n"), routing) ==
        "fabric.routing.algorithm = `adapt`: accepted are minimal, valiant, adaptive");
}

TEST_CASE("a line without a value and a name given twice are refused") {
  CHECK(refusal({}, [](const Spec&) { Spec::parse("run.seed\n"); }).find("line 1") != std::string::npos);
  CHECK(refusal({}, [](const Spec&) { Spec::parse("a 1\na 2\n"); }) == "resolved spec: a is given twice");
}

}  // namespace
}  // namespace dryfly
