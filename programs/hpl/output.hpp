// What the reports of both solvers write with.
#pragma once

#include <cstdio>
#include <string>

namespace dryfly::hpl {

// What both benchmarks count for a system of this order, whatever was computed: 2/3 N^3 + 3/2 N^2.
constexpr double operations(double order) { return (2.0 / 3.0 * order + 1.5) * order * order; }

// As JSON: null for what is no finite number, and text with its quotes.
std::string number(double value);
std::string quoted(const std::string& text);

// nullptr for no name; BadInput with the field if the file cannot be written.
std::FILE* opened(const char* field, const std::string& name);

}  // namespace dryfly::hpl
