#include "rank/nic_choice.hpp"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "rank/self.hpp"

namespace dryfly::rank {

namespace {

void skip_blanks(const char*& at) {
  while (*at == ' ' || *at == '\t' || *at == '"') ++at;
}

bool number(const char*& at, std::uint32_t& value) {
  skip_blanks(at);
  if (*at < '0' || *at > '9') return false;
  char* end = nullptr;
  value = static_cast<std::uint32_t>(strtoul(at, &end, 10));
  at = end;
  skip_blanks(at);
  return true;
}

// "3,1,0,2"
bool number_list(const char*& at, std::uint32_t* values, std::uint32_t& count) {
  for (count = 0; count < node_nics_max;) {
    if (!number(at, values[count])) return false;
    ++count;
    if (*at != ',') return true;
    ++at;
  }
  return false;
}

bool key(const char*& at, const char* name) {
  skip_blanks(at);
  const std::size_t length = strlen(name);
  if (strncmp(at, name, length) != 0 || at[length] != '=') return false;
  at += length + 1;
  return true;
}

bool read_item(const char*& at, NodeNics& node) {
  std::uint32_t listed = 0;
  if (key(at, "nics")) return number(at, node.nics);
  if (key(at, "local")) return number(at, node.local_rank);
  if (key(at, "ranks")) return number(at, node.local_ranks);
  if (key(at, "domains")) return number(at, node.domains);
  if (key(at, "sockets")) return number(at, node.sockets);
  if (key(at, "at")) return number_list(at, node.nic_domain, listed);
  if (key(at, "gpus")) return number_list(at, node.gpu_domain, node.gpus);
  if (key(at, "domain")) return number(at, node.domain);
  if (key(at, "turn")) return number(at, node.domain_turn);
  if (key(at, "gpu")) return number(at, node.gpu);
  if (key(at, "gputurn")) return number(at, node.gpu_turn);
  if (key(at, "nic")) return number(at, node.nic);
  return false;
}

// The NICs that may be used, as MPICH_OFI_NUM_NICS says: "2", or "2:1,3".
bool read_allowed(const char* text, std::uint32_t nics, std::uint32_t* allowed, std::uint32_t& count) {
  count = nics;
  for (std::uint32_t nic = 0; nic < nics; ++nic) allowed[nic] = nic;
  if (text == nullptr) return true;
  std::uint32_t wanted = 0;
  if (!number(text, wanted) || wanted == 0 || wanted > nics) return false;
  count = wanted;
  if (*text == 0) return true;
  if (*text != ':') return false;
  ++text;
  if (!number_list(text, allowed, count) || *text != 0 || count != wanted) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (allowed[i] >= nics) return false;
  }
  return true;
}

// A domain, and how many ranks of lower numbers have the same.
struct Here {
  std::uint32_t domain;
  std::uint32_t turn;
};

template <typename DomainOf>
Here in_blocks(const NodeNics& node, DomainOf domain_of) {
  Here here{domain_of(node.local_rank), 0};
  for (std::uint32_t rank = 0; rank < node.local_rank; ++rank) {
    if (domain_of(rank) == here.domain) ++here.turn;
  }
  return here;
}

Here of_processor(const NodeNics& node) {
  if (node.domain != NodeNics::not_said) return {node.domain, node.domain_turn};
  return in_blocks(node, [&](std::uint32_t local_rank) { return local_rank * node.domains / node.local_ranks; });
}

Here of_gpu(const NodeNics& node) {
  if (node.gpu < node.gpus) return {node.gpu_domain[node.gpu], node.gpu_turn};
  return in_blocks(
      node, [&](std::uint32_t local_rank) { return node.gpu_domain[local_rank * node.gpus / node.local_ranks]; });
}

std::uint32_t distance(const NodeNics& node, std::uint32_t a, std::uint32_t b) {
  if (a == b) return 0;
  return a * node.sockets / node.domains == b * node.sockets / node.domains ? 1 : 2;
}

// The nearest of the allowed NICs; the ranks of a domain, in their order, take those that are equally near in turn.
std::uint32_t nearest(const NodeNics& node, const std::uint32_t* allowed, std::uint32_t count, const Here& here) {
  std::uint32_t least = 3;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t away = distance(node, here.domain, node.nic_domain[allowed[i]]);
    if (away < least) least = away;
  }
  std::uint32_t near[node_nics_max];
  std::uint32_t near_count = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (distance(node, here.domain, node.nic_domain[allowed[i]]) == least) near[near_count++] = allowed[i];
  }
  return near[here.turn % near_count];
}

// "0:0-3; 1:4,5": finds the NIC of the local rank.
NicChoice mapped(const char* at, const NodeNics& node, std::uint32_t& nic) {
  if (at == nullptr) return NicChoice::bad_mapping;
  bool found = false;
  for (;;) {
    std::uint32_t candidate = 0;
    if (!number(at, candidate) || candidate >= node.nics || *at != ':') return NicChoice::bad_mapping;
    do {
      ++at;
      std::uint32_t first = 0;
      if (!number(at, first)) return NicChoice::bad_mapping;
      std::uint32_t last = first;
      if (*at == '-' && (!number(++at, last) || last < first)) return NicChoice::bad_mapping;
      if (node.local_rank >= first && node.local_rank <= last) {
        if (found) return NicChoice::bad_mapping;
        found = true;
        nic = candidate;
      }
    } while (*at == ',');
    if (*at == 0) break;
    if (*at != ';') return NicChoice::bad_mapping;
    skip_blanks(++at);
    if (*at == 0) break;
  }
  return found ? NicChoice::chosen : NicChoice::not_mapped;
}

// The process may have bound itself since, or a wrapper script has; what the others have done is not known.
void follow_process(NodeNics& node) {
  const std::uint32_t bound = &dryfly_self != nullptr ? dryfly_self.domain : 0;
  if (bound == 0 || bound - 1 == node.domain || bound > node.domains) return;
  node.domain = bound - 1;
  node.domain_turn = node.local_rank;
}

}  // namespace

bool read_node_nics(const char* text, NodeNics& node) {
  node = {};
  if (text == nullptr) return false;
  for (skip_blanks(text); *text != 0; skip_blanks(text)) {
    if (!read_item(text, node)) return false;
  }
  follow_process(node);
  return node.nics > 0 && node.nics <= node_nics_max && node.local_ranks > node.local_rank && node.domains > 0 &&
         node.sockets > 0;
}

NicSettings nic_settings_of_environment() {
  return {getenv("MPICH_OFI_NIC_POLICY"), getenv("MPICH_OFI_NIC_MAPPING"), getenv("MPICH_OFI_NUM_NICS")};
}

NicChoice choose_nic(const NodeNics& node, const NicSettings& settings, std::uint32_t& nic) {
  const bool has_policy = settings.policy != nullptr && *settings.policy != 0;
  if (!has_policy && node.nic < node.nics) {
    nic = node.nic;
    return NicChoice::chosen;
  }
  const char* policy = has_policy ? settings.policy : "BLOCK";
  if (strcasecmp(policy, "USER") == 0) return mapped(settings.mapping, node, nic);
  std::uint32_t allowed[node_nics_max];
  std::uint32_t count = 0;
  if (!read_allowed(settings.number, node.nics, allowed, count)) return NicChoice::bad_number;
  if (strcasecmp(policy, "BLOCK") == 0) {
    nic = allowed[static_cast<std::uint64_t>(node.local_rank) * count / node.local_ranks];
  } else if (strcasecmp(policy, "ROUND-ROBIN") == 0) {
    nic = allowed[node.local_rank % count];
  } else if (strcasecmp(policy, "NUMA") == 0) {
    nic = nearest(node, allowed, count, of_processor(node));
  } else if (strcasecmp(policy, "GPU") == 0) {
    if (node.gpus == 0) return NicChoice::no_gpus;
    nic = nearest(node, allowed, count, of_gpu(node));
  } else {
    return NicChoice::unknown_policy;
  }
  return NicChoice::chosen;
}

void write_reason(NicChoice choice, const NodeNics& node, const NicSettings& settings, char* text, std::size_t room) {
  const auto value = [](const char* given) { return given != nullptr ? given : ""; };
  switch (choice) {
    case NicChoice::chosen:
      snprintf(text, room, "a NIC is chosen");
      return;
    case NicChoice::unknown_policy:
      snprintf(text, room, "MPICH_OFI_NIC_POLICY=%s: accepted is BLOCK, ROUND-ROBIN, NUMA, GPU or USER",
               value(settings.policy));
      return;
    case NicChoice::bad_mapping:
      snprintf(text, room,
               "MPICH_OFI_NIC_MAPPING=%s: accepted is NIC:RANKS;..., such as 0:0-3;1:4,5, each local rank once",
               value(settings.mapping));
      return;
    case NicChoice::not_mapped:
      snprintf(text, room, "MPICH_OFI_NIC_MAPPING=%s: local rank %u is not mapped", value(settings.mapping),
               node.local_rank);
      return;
    case NicChoice::bad_number:
      snprintf(text, room, "MPICH_OFI_NUM_NICS=%s: accepted is 1 to %u, the NICs of a node, or NUMBER:NIC,NIC",
               value(settings.number), node.nics);
      return;
    case NicChoice::no_gpus:
      snprintf(text, room, "MPICH_OFI_NIC_POLICY=%s: the machine says nothing of GPUs", value(settings.policy));
      return;
  }
}

}  // namespace dryfly::rank
