#include "core/record/json_writer.hpp"

#include <array>
#include <charconv>
#include <cmath>

#include "core/unit/check.hpp"

namespace dryfly {

namespace {

constexpr std::string_view replacement_character = "\xef\xbf\xbd";

unsigned char byte(char c) { return static_cast<unsigned char>(c); }

// The length of the well-formed UTF-8 sequence at the beginning of the text, or 0. Table 3-7 of the Unicode
// standard: only the second byte has bounds that depend on the first.
std::size_t sequence_length(std::string_view text) {
  const unsigned char lead = byte(text[0]);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  const unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(text[1]) < least || byte(text[1]) > most) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(text[i]) < 0x80 || byte(text[i]) > 0xbf) return 0;
  }
  return length;
}

std::string escaped(char c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default: {
      constexpr char digits[] = "0123456789abcdef";
      return std::string("\\u00") + digits[byte(c) >> 4] + digits[byte(c) & 0xf];
    }
  }
}

bool must_be_escaped(char c) { return byte(c) < 0x20 || c == '"' || c == '\\'; }

template <class Number>
std::string text_of(Number number) {
  std::array<char, 32> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  DRYFLY_CHECK(error == std::errc{});
  return {buffer.data(), end};
}

}  // namespace

void JsonWriter::value(std::uint64_t number) { literal(text_of(number)); }
void JsonWriter::value(std::int64_t number) { literal(text_of(number)); }
void JsonWriter::value(double number) { literal(std::isfinite(number) ? text_of(number) : "null"); }

void JsonWriter::value(std::string_view text) {
  before_value();
  quoted(text);
}

void JsonWriter::key(std::string_view name) {
  DRYFLY_CHECK(!open_.empty() && open_.back() == '}' && !after_key_);
  if (!first_) out_ += ',';
  first_ = false;
  quoted(name);
  out_ += ':';
  after_key_ = true;
}

void JsonWriter::open(char bracket) {
  before_value();
  out_ += bracket;
  open_ += bracket == '{' ? '}' : ']';
  first_ = true;
}

void JsonWriter::close(char bracket) {
  DRYFLY_CHECK(!open_.empty() && open_.back() == bracket && !after_key_);
  out_ += bracket;
  open_.pop_back();
  first_ = false;
}

void JsonWriter::before_value() {
  DRYFLY_CHECK(open_.empty() ? !begun_ : open_.back() == ']' || after_key_);
  begun_ = true;
  if (!after_key_ && !first_) out_ += ',';
  first_ = false;
  after_key_ = false;
}

void JsonWriter::literal(std::string_view text) {
  before_value();
  out_ += text;
}

void JsonWriter::quoted(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      out_ += replacement_character;
    } else if (must_be_escaped(text[0])) {
      out_ += escaped(text[0]);
    } else {
      out_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out_ += '"';
}

}  // namespace dryfly
