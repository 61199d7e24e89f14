#include "preload/node/shape.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

constexpr char variable[] = "DRYFLY_PROCESSORS";

bool number(const char*& at, std::uint32_t& value) {
  if (*at < '0' || *at > '9') return false;
  char* end = nullptr;
  value = static_cast<std::uint32_t>(strtoul(at, &end, 10));
  at = end;
  return true;
}

bool key(const char*& at, const char* name) {
  while (*at == ' ') ++at;
  const std::size_t length = strlen(name);
  if (strncmp(at, name, length) != 0) return false;
  at += length;
  return true;
}

bool read_sockets(const char*& at, NodeShape& shape) {
  do {
    if (shape.domains == domains_max || !number(at, shape.socket[shape.domains])) return false;
    ++shape.domains;
  } while (*at == ',' && *++at != 0);
  return true;
}

// Of "nics=8 local=3 ranks=12 ...", the number behind such a name, and at least `least`.
std::uint32_t word_of(const char* text, const char* name, std::uint32_t least) {
  const char* at = text != nullptr ? strstr(text, name) : nullptr;
  std::uint32_t value = 0;
  if (at != nullptr) number(at += strlen(name), value);
  return value < least ? least : value;
}

// "cores=104 threads=2 cored=2 domains=0,1,0,1 allowed=1-51,53-103"
bool read_shape(const char* at, NodeShape& shape) {
  return at != nullptr && key(at, "cores=") && number(at, shape.cores) && key(at, "threads=") &&
         number(at, shape.threads) && key(at, "cored=") && number(at, shape.cored) && key(at, "domains=") &&
         read_sockets(at, shape) && shape.processors() <= wire::processors_max && shape.cores > 0 && shape.cored > 0 &&
         key(at, "allowed=") && read_set(at, shape.allowed) && shape.allowed.any();
}

}  // namespace

bool Processors::any() const {
  for (const std::uint64_t word : words) {
    if (word != 0) return true;
  }
  return false;
}

std::uint32_t Processors::first() const {
  std::uint32_t number = 0;
  while (number + 1 < wire::processors_max && !has(number)) ++number;
  return number;
}

Processors Processors::operator&(const Processors& other) const {
  Processors both;
  for (std::uint32_t word = 0; word < wire::processors_max / 64; ++word) {
    both.words[word] = words[word] & other.words[word];
  }
  return both;
}

std::uint32_t NodeShape::domain_of(std::uint32_t processor) const {
  const std::uint32_t core = processor % cores;
  for (std::uint32_t domain = 0; domain + 1 < cored; ++domain) {
    if (core < (domain + 1) * cores / cored) return domain;
  }
  return cored - 1;
}

std::uint32_t usual_processor(const NodeShape& node, const char* told) {
  const std::uint32_t ranks = word_of(told, "ranks=", 1);
  const std::uint32_t local = word_of(told, "local=", 0) % ranks;
  const auto domain_of_rank = [&](std::uint32_t rank) { return rank * node.cored / ranks; };
  const std::uint32_t domain = domain_of_rank(local);
  std::uint32_t before = 0;  // ranks of the domain with lower numbers
  std::uint32_t beside = 0;  // and all of them
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (domain_of_rank(rank) != domain) continue;
    before += rank < local ? 1 : 0;
    ++beside;
  }
  Processors cores;
  std::uint32_t count = 0;
  for (std::uint32_t core = 0; core < node.cores; ++core) {
    if (!node.allowed.has(core) || node.domain_of(core) != domain) continue;
    cores.add(core);
    ++count;
  }
  if (count == 0) return node.allowed.first();
  std::uint32_t left = before * count / beside;
  for (std::uint32_t core = 0; core < node.cores; ++core) {
    if (cores.has(core) && left-- == 0) return core;
  }
  return node.allowed.first();
}

bool read_set(const char*& at, Processors& set) {
  for (;;) {
    std::uint32_t first = 0;
    if (!number(at, first)) return false;
    std::uint32_t last = first;
    if (*at == '-' && !number(++at, last)) return false;
    if (last < first || last >= wire::processors_max) return false;
    for (; first <= last; ++first) set.add(first);
    if (*at != ',') return true;
    ++at;
  }
}

char* write_set(const Processors& set, char* to) {
  const char* separator = "";
  for (std::uint32_t first = 0; first < wire::processors_max; ++first) {
    if (!set.has(first)) continue;
    std::uint32_t last = first;
    while (last + 1 < wire::processors_max && set.has(last + 1)) ++last;
    to += sprintf(to, last == first ? "%s%u" : "%s%u-%u", separator, first, last);
    separator = ",";
    first = last;
  }
  *to = 0;
  return to;
}

const NodeShape* node_shape() {
  enum State : int { unread, none, there };
  static constinit NodeShape shape;
  static State state = unread;
  if (state == unread) {
    NodeShape found;
    const bool is_one = belongs_to_run() && read_shape(getenv(variable), found);
    if (is_one) shape = found;
    state = is_one ? there : none;
  }
  return state == there ? &shape : nullptr;
}

}  // namespace dryfly::preload
