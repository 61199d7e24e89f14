#include "output.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>

#include "bad_input.hpp"

namespace dryfly::hpl {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return std::isfinite(value) ? text : "null";
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

void write_steps(std::FILE* file, const char* name, const std::vector<StepTimes>& steps,
                 std::span<const NamedPhase> phases) {
  std::fprintf(file, "   \"%s\": {\"wall\": [", name);
  for (std::size_t i = 0; i < steps.size(); ++i) std::fprintf(file, "%s%.6g", i == 0 ? "" : ", ", steps[i].wall);
  for (const auto& [phase, title] : phases) {
    std::fprintf(file, "],\n    \"%s\": [", title);
    for (std::size_t i = 0; i < steps.size(); ++i)
      std::fprintf(file, "%s%.6g", i == 0 ? "" : ", ", steps[i].phase[static_cast<std::size_t>(phase)]);
  }
  std::fputs("]}", file);
}

std::FILE* opened(const char* field, const std::string& name) {
  if (name.empty()) return nullptr;
  std::FILE* file = std::fopen(name.c_str(), "w");
  if (file == nullptr) throw BadInput(std::string(field) + " " + name + ": " + std::strerror(errno));
  return file;
}

}  // namespace dryfly::hpl
