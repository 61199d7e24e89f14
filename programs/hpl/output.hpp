// What the reports of both solvers write with.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "phases.hpp"

namespace dryfly::hpl {

// What both benchmarks count for a system of this order, whatever was computed: 2/3 N^3 + 3/2 N^2.
constexpr double operations(double order) { return (2.0 / 3.0 * order + 1.5) * order * order; }

// As JSON: null for what is no finite number, and text with its quotes.
std::string number(double value);
std::string quoted(const std::string& text);

// A member with one array for each quantity, so that a step is an index into all of them.
using NamedPhase = std::pair<Phase, const char*>;
void write_steps(std::FILE* file, const char* name, const std::vector<StepTimes>& steps,
                 std::span<const NamedPhase> phases);

// nullptr for no name; BadInput with the field if the file cannot be written.
std::FILE* opened(const char* field, const std::string& name);

}  // namespace dryfly::hpl
