// Writes JSON into a string, one call per value; commas, quotes and escapes are its business. What it writes is
// always valid: bytes of a string that are no UTF-8 (a file name may hold anything) become U+FFFD, and a number that
// JSON cannot express (infinite, or not a number) becomes null. Wrong nesting is a bug and fails a check.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace dryfly {

class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  // In an object: the name of the value that follows.
  void key(std::string_view name);

  void value(std::uint64_t number);
  void value(std::int64_t number);
  void value(double number);  // the shortest text that reads back as the same number
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view{text}); }
  void value(bool flag) { literal(flag ? "true" : "false"); }
  // Other integers as the 64-bit one of the same sign.
  template <std::integral Number>
  void value(Number number) {
    if constexpr (std::signed_integral<Number>) {
      value(std::int64_t{number});
    } else {
      value(std::uint64_t{number});
    }
  }

  template <class Value>
  void member(std::string_view name, const Value& content) {
    key(name);
    value(content);
  }

  // True when every object and array that was begun has ended.
  bool complete() const { return open_.empty() && begun_; }

 private:
  void open(char bracket);
  void close(char bracket);
  void before_value();
  void literal(std::string_view text);
  void quoted(std::string_view text);

  std::string& out_;
  std::string open_;  // closing brackets that are due, innermost last
  bool begun_ = false;
  bool first_ = true;  // nothing yet in the innermost object or array
  bool after_key_ = false;
};

}  // namespace dryfly
