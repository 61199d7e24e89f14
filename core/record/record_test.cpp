#include <doctest/doctest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/record/fingerprint.hpp"
#include "core/record/json_writer.hpp"

namespace dryfly {
namespace {

struct Delivery {
  std::uint64_t at;
  std::uint32_t source;
  std::uint32_t target;
  std::uint64_t size;
};

std::string fingerprint_of(const std::vector<Delivery>& deliveries) {
  Fingerprint fingerprint;
  for (const Delivery& delivery : deliveries) {
    fingerprint.add(Instant{delivery.at}, RankId{delivery.source}, RankId{delivery.target}, Bytes{delivery.size});
  }
  return fingerprint.text();
}

TEST_CASE("a fingerprint sees the instant, source, target, size, number and order of messages") {
  const std::set<std::string> all{
      fingerprint_of({}),
      fingerprint_of({{1000, 1, 2, 8}}),
      fingerprint_of({{1001, 1, 2, 8}}),
      fingerprint_of({{1000, 2, 1, 8}}),
      fingerprint_of({{1000, 1, 3, 8}}),
      fingerprint_of({{1000, 1, 2, 9}}),
      fingerprint_of({{0, 0, 0, 0}}),
      fingerprint_of({{0, 0, 0, 0}, {0, 0, 0, 0}}),
      fingerprint_of({{1000, 1, 2, 8}, {2000, 3, 4, 16}}),
      fingerprint_of({{2000, 3, 4, 16}, {1000, 1, 2, 8}}),
  };
  CHECK(all.size() == 10);
}

TEST_CASE("equal sequences have equal fingerprints of 32 hexadecimal digits") {
  const std::string text = fingerprint_of({{1000, 1, 2, 8}, {2000, 3, 4, 16}});
  CHECK(text == fingerprint_of({{1000, 1, 2, 8}, {2000, 3, 4, 16}}));
  CHECK(text.size() == 32);
  CHECK(text.find_first_not_of("0123456789abcdef") == std::string::npos);
}

TEST_CASE("a hundred thousand messages that differ in one bit each have different fingerprints in both halves") {
  std::set<std::string> first_halves;
  std::set<std::string> second_halves;
  for (std::uint64_t at = 0; at < 100'000; ++at) {
    const std::string text = fingerprint_of({{at, 0, 0, 0}});
    first_halves.insert(text.substr(0, 16));
    second_halves.insert(text.substr(16));
  }
  CHECK(first_halves.size() == 100'000);
  CHECK(second_halves.size() == 100'000);
}

template <class Value>
std::string json_of(const Value& value) {
  std::string out;
  JsonWriter json(out);
  json.value(value);
  CHECK(json.complete());
  return out;
}

TEST_CASE("objects and arrays nest, with commas between members only") {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.member("machine", "aurora");
  json.key("empty");
  json.begin_object();
  json.end_object();
  json.key("rows");
  json.begin_array();
  json.value(1);
  json.begin_array();
  json.end_array();
  json.begin_object();
  json.member("ok", true);
  json.end_object();
  CHECK_FALSE(json.complete());
  json.end_array();
  json.member("last", std::int64_t{-1});
  json.end_object();
  CHECK(json.complete());
  CHECK(out == R"({"machine":"aurora","empty":{},"rows":[1,[],{"ok":true}],"last":-1})");
}

TEST_CASE("numbers keep all their digits") {
  CHECK(json_of(std::numeric_limits<std::uint64_t>::max()) == "18446744073709551615");
  CHECK(json_of(std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(json_of(std::uint8_t{200}) == "200");
  CHECK(json_of(0.1) == "0.1");
  CHECK(std::stod(json_of(1.0 / 3)) == 1.0 / 3);
  CHECK(json_of(std::numeric_limits<double>::infinity()) == "null");
  CHECK(json_of(std::numeric_limits<double>::quiet_NaN()) == "null");
}

TEST_CASE("strings are escaped, and come out as valid UTF-8 whatever they hold") {
  CHECK(json_of("a\"b\\c\n\t\r") == R"("a\"b\\c\n\t\r")");
  CHECK(json_of(std::string("\0\x1f", 2)) == R"("\u0000\u001f")");
  CHECK(json_of("Gr\xc3\xbc\xc3\x9f"
                "e \xe2\x82\xac \xf0\x9f\x90\x9f") ==
        "\"Gr\xc3\xbc\xc3\x9f"
        "e \xe2\x82\xac \xf0\x9f\x90\x9f\"");
  const std::string bad = "\xef\xbf\xbd";  // U+FFFD
  CHECK(json_of("a\xff"
                "b") == "\"a" + bad + "b\"");
  CHECK(json_of("\xc3") == '"' + bad + '"');                                // cut off
  CHECK(json_of("\xc0\xaf") == '"' + bad + bad + '"');                      // overlong /
  CHECK(json_of("\xed\xa0\x80") == '"' + bad + bad + bad + '"');            // a surrogate
  CHECK(json_of("\xf4\x90\x80\x80") == '"' + bad + bad + bad + bad + '"');  // above U+10FFFF
}

}  // namespace
}  // namespace dryfly
