#include "output.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>

#include "options.hpp"

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

std::FILE* opened(const char* field, const std::string& name) {
  if (name.empty()) return nullptr;
  std::FILE* file = std::fopen(name.c_str(), "w");
  if (file == nullptr) throw BadInput(std::string(field) + " " + name + ": " + std::strerror(errno));
  return file;
}

}  // namespace dryfly::hpl
